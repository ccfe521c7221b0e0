"""What goes out over connections that come and go: in order, again after a loss, and not for ever.  No I/O."""

from attrs import define, field

from nerve.contract.generated.frames_client import AnswerInteractionFrame, ClientFrame, MessageFrame

# A server forgets an id after ten minutes; what is sent again later could run twice.
RESEND_SECONDS = 9 * 60.0
MAX_SENDS = 5
MAX_WAITING = 1000

_Key = tuple[type[ClientFrame], str]


@define
class _Held:
    frame: ClientFrame
    first_sent_at: float | None = None
    sends: int = 0
    on_the_wire: bool = False

    def spent(self, now: float) -> bool:
        """An answer settles its question once, however late it comes; a message could run twice."""
        late = isinstance(self.frame, MessageFrame) and self.first_sent_at is not None
        expired = late and now - (self.first_sent_at or 0.0) > RESEND_SECONDS
        return not self.on_the_wire and (expired or self.sends >= MAX_SENDS)


@define(eq=False)
class Outgoing:
    """Messages and answers are sent again until something shows that they arrived; anything else is sent once."""

    _held: dict[_Key, _Held] = field(factory=dict, init=False)
    _count: int = field(default=0, init=False)

    @property
    def messages(self) -> tuple[str, ...]:
        """Ids of the messages of which nobody has shown that they arrived."""
        return tuple(key for kind, key in self._held if kind is MessageFrame)

    def add(self, frame: ClientFrame) -> None:
        """Raises ValueError when too many wait already."""
        if len(self._held) >= MAX_WAITING:
            raise ValueError("too much waits for the line already")
        self._count += 1
        match frame:
            case MessageFrame(client_msg_id=str(name)) | AnswerInteractionFrame(interaction_id=name):
                self._held[type(frame), name] = _Held(frame)
            case _:
                self._held[type(frame), str(self._count)] = _Held(frame)

    def due(self, now: float) -> list[ClientFrame]:
        """What is not on the wire; it counts as sent."""
        waiting = [(key, held) for key, held in self._held.items() if not held.on_the_wire]
        for key, held in waiting:
            held.on_the_wire, held.sends = True, held.sends + 1
            held.first_sent_at = now if held.first_sent_at is None else held.first_sent_at
            if key[0] not in (MessageFrame, AnswerInteractionFrame):
                del self._held[key]
        return [held.frame for _, held in waiting]

    def disconnected(self) -> None:
        for held in self._held.values():
            held.on_the_wire = False

    def confirm_message(self, client_msg_id: str) -> None:
        self._held.pop((MessageFrame, client_msg_id), None)

    def confirm_answer(self, interaction_id: str) -> None:
        self._held.pop((AnswerInteractionFrame, interaction_id), None)

    def answer_refused(self) -> None:
        """The refusal does not say which one; requests are answered in their order."""
        answers = (key for key, held in self._held.items() if key[0] is AnswerInteractionFrame and held.on_the_wire)
        if (first := next(answers, None)) is not None:
            del self._held[first]

    def give_up(self, now: float) -> list[MessageFrame | AnswerInteractionFrame]:
        """What is not sent any more, although nobody knows whether it arrived."""
        spent = {key: held.frame for key, held in self._held.items() if held.spent(now)}
        for key in spent:
            del self._held[key]
        return [frame for frame in spent.values() if isinstance(frame, MessageFrame | AnswerInteractionFrame)]
