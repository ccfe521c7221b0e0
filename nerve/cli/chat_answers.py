"""What the agents of a session wait for, in their order, and the answers that a chat gives."""

from typing import Protocol

from attrs import define, field, frozen

from nerve.cli.chat_asking import Asking, Edit, Next, Outcome, Plan, Questions, Reply, asking_of, refusal
from nerve.cli.chat_input import Command, Name
from nerve.cli.chat_questions import Wrong
from nerve.cli.chat_render import Renderer
from nerve.cli.chat_text import Tone, one_line
from nerve.client import CaughtUp, Disconnected, LiveEvent, LiveSession
from nerve.contract.generated.frames_server import (
    GapFrame,
    InteractionFrame,
    InteractionResolvedFrame,
    SessionRunningFrame,
    SessionStatusFrame,
)

LABEL = 60


class Talk(Protocol):
    """What is done to the chat here."""

    live: LiveSession | None
    offline: bool
    renderer: Renderer

    def remark(self, text: str) -> None: ...

    def complain(self, text: str) -> None: ...

    def mention(self, text: str, tone: Tone, mark: str) -> None: ...

    def ask(self, preamble: str, text: str) -> None: ...


@frozen
class _Pending:
    interaction_id: str
    asking: Asking | None  # None: it can be refused here, and no more
    label: str | None  # of the agent, where it is not the session's own


@define(eq=False)
class Answers:
    """``editing`` is the plan that is to be edited next."""

    _talk: Talk
    editing: str | None = None
    _pending: dict[str, _Pending] = field(factory=dict)
    _shown: str | None = None  # the one whose preamble was shown last
    _aside: bool = False
    _behind: bool = False  # nothing numbered has come since the line was lost
    _live: bool = False  # not before everything that was missed has been seen

    @property
    def asked(self) -> bool:
        """Whether a line is an answer now."""
        return bool(self._pending) and self._live and not self._aside

    def begin(self) -> None:
        """Another session is shown from here on."""
        self._pending.clear()
        self._shown, self._aside, self._behind, self._live, self.editing = None, False, False, False, None

    def seen(self, event: LiveEvent) -> None:
        """Something came from the server."""
        if isinstance(getattr(event, "seq", None), int):
            self._behind = False
        match event:
            case Disconnected():
                self._behind = True
            case GapFrame(reset=reset) if self._behind or reset is True:
                self._pending.clear()  # what still waits is told again
                self._shown = None
            case InteractionFrame(interaction_id=interaction_id):
                self._add(interaction_id, event)
            case InteractionResolvedFrame(interaction_id=interaction_id):
                self._withdraw([interaction_id])
            case SessionStatusFrame(is_running=False) | SessionRunningFrame(is_running=False):
                self._withdraw([key for key, pending in self._pending.items() if pending.label is None])
            case CaughtUp(first=True):
                self._live = True
                self._show()

    def take(self, line: str) -> None:
        """A line of the person, while something is asked."""
        current = self._current()
        if current.asking is None:
            self._talk.complain("this can't be answered here; /refuse refuses it, /later puts it aside")
        else:
            self._come_of(current, current.asking.take(line))

    def carry_out(self, command: Command) -> None:
        """One of the commands about what is asked."""
        if not self._pending or not self._live:
            self._talk.complain("nothing is asked")
        elif command.name is Name.ANSWER:
            self._aside, self._shown = False, None
            self._show()
        elif command.name is Name.LATER:
            self._aside = True
            self._talk.remark("put aside; /answer takes it up again")
        else:
            self._aside = False
            current = self._current()
            self._come_of(current, _outcome(current.asking, command))

    def edited(self, text: str) -> None:
        """The plan is back from the editor."""
        if self._pending and isinstance(plan := self._current().asking, Plan):
            self._come_of(self._current(), plan.edited(text))
        else:
            self._talk.complain("the plan is settled meanwhile; nothing was sent")

    # --- what is asked --------------------------------------------------------------------------------------------

    def _current(self) -> _Pending:
        return next(iter(self._pending.values()))

    def _add(self, interaction_id: str, frame: InteractionFrame) -> None:
        label = None if frame.agent is None else one_line(frame.agent.label, LABEL, self._talk.renderer.symbols)
        self._pending[interaction_id] = _Pending(interaction_id, asking_of(frame), label)
        if len(self._pending) == 1:
            self._aside = False
            self._show()
        elif self._live:
            self._talk.remark("there is another question behind this one")

    def _withdraw(self, interaction_ids: list[str]) -> None:
        gone = [key for key in interaction_ids if self._pending.pop(key, None) is not None]
        if gone and self._live:
            self._talk.remark("answered elsewhere, or not asked any more")
            self._show()

    def _show(self) -> None:
        """The question that is to be answered now."""
        if not self.asked:
            return
        current = self._current()
        symbols = self._talk.renderer.symbols
        first, self._shown = self._shown != current.interaction_id, current.interaction_id
        if current.asking is None:
            self._talk.ask("", "the agent asks what this version can't show; /refuse refuses it")
            return
        by = f"{current.label} asks:" if current.label is not None and first else ""
        preamble = "\n".join(filter(None, (by, current.asking.preamble()))) if first else ""
        self._talk.ask(preamble, current.asking.text(symbols))

    # --- what is answered -----------------------------------------------------------------------------------------

    def _come_of(self, current: _Pending, outcome: Outcome) -> None:
        match outcome:
            case Wrong(reason=reason):
                self._talk.complain(reason)
            case Edit(text=text):
                self.editing = text
            case Next(said=said):
                self._say(said)
                self._show()
            case Reply():
                self._reply(current.interaction_id, outcome)

    def _reply(self, interaction_id: str, reply: Reply) -> None:
        live = self._talk.live
        if live is None:
            self._talk.complain("another session is being opened; the arrow key brings your line back")
            return
        try:
            live.answer(interaction_id, reply.result, denied=reply.denied, message=reply.message)
        except ValueError as refused:
            self._talk.complain(str(refused))
            return
        del self._pending[interaction_id]
        self._say(reply.said)
        if self._talk.offline:
            self._talk.remark("it goes out once the line is back")
        self._show()

    def _say(self, said: str) -> None:
        symbols = self._talk.renderer.symbols
        if said:
            self._talk.mention(one_line(said, 2 * LABEL, symbols), Tone.GOOD, symbols.good)


def _outcome(asking: Asking | None, command: Command) -> Outcome:
    match command.name, asking:
        case Name.REFUSE, _:
            return refusal(command.argument)
        case Name.EDIT, Plan(plan=plan):
            return Edit(plan)
        case Name.SKIP, Questions():
            return asking.skip()
        case Name.BACK, Questions():
            return asking.back()
        case Name.EDIT, _:
            return Wrong("there is no plan to edit")
        case Name.SKIP, _:
            return Wrong("this can't be left out; /later puts it aside")
        case _:
            return Wrong("there is no question before this one")
