"""The agents of a chat's session: what becomes of them, a list, one of them looked at, watched, stopped."""

from typing import Protocol

from attrs import define, field

from nerve.cli.chat_agents_text import Told, called, item_lines, kind_of, row, told
from nerve.cli.chat_input import Command, Name
from nerve.cli.chat_render import Renderer
from nerve.cli.chat_text import Tone, clean, one_line
from nerve.client import AgentChange, CaughtUp, Disconnected, LiveEvent, LiveSession, NerveClient, Roster, Transcript
from nerve.contract.generated.agents import AgentAtRest
from nerve.contract.generated.entities import AgentEventItem, AgentKind, AgentStatus, AgentView
from nerve.contract.generated.frames_server import (
    AgentEventFrame,
    AutoTurnFrame,
    SessionRunningFrame,
    SessionStatusFrame,
    ThinkingFrame,
    TokenFrame,
)
from nerve.contract.generated.sessions import AllStopped, ForceStopped

ROWS = 30
ITEMS = 10
PAGE = 200
OUTPUT_BYTES, OUTPUT_LINES = 4096, 10
BRIEF = 300
NAMED = 3


class Talk(Protocol):
    """What is done to the chat here."""

    client: NerveClient
    session_id: str
    live: LiveSession | None
    renderer: Renderer

    def remark(self, text: str) -> None: ...

    def complain(self, text: str) -> None: ...

    def mention(self, text: str, tone: Tone, mark: str) -> None: ...

    def later(self, command: Command) -> None:
        """Carry it out behind what was asked for before it."""
        ...


@define(eq=False)
class Agents:
    _talk: Talk
    _roster: Roster = field(factory=Roster)
    _watched: dict[str, Transcript] = field(factory=dict)
    _introduced: bool = False
    _named: set[str] = field(factory=set)  # whose ends the turns that they began have told already
    _flowing: bool = False  # a line of the conversation is being said
    _held: list[Told] = field(factory=list)  # until that line has ended

    @property
    def working(self) -> list[AgentView]:
        """What goes on in the background, whatever becomes of the turn."""
        return [view for view in self._roster.live if view.background]

    def begin(self) -> None:
        """Another session is shown from here on."""
        self._roster, self._introduced = Roster(), False
        self._watched.clear()
        self._named.clear()
        self._flowing = False
        self._held.clear()

    def seen(self, event: LiveEvent) -> None:
        """Something came from the server."""
        changes = self._roster.see(event)
        self._let_finish(event)
        if isinstance(event, SessionStatusFrame) and not self._introduced:
            self._introduced = True
            if self.working:
                self._talk.remark(f"in the background: {self._names(self.working)}; /agents tells more")
            return
        for change in changes:
            self._tell(change)
        match event:
            case AutoTurnFrame(triggers=list() as triggers):
                self._named |= {trigger.agent_id for trigger in triggers}
            case AgentEventFrame(agent_id=agent_id, item=item) if agent_id in self._watched:
                self._show(agent_id, [item])
                if self._watched[agent_id].incomplete:
                    self._talk.later(Command(Name.WATCH, agent_id))
            case CaughtUp(first=False):
                for agent_id in self._watched:  # what passed while the line was lost
                    self._talk.later(Command(Name.WATCH, agent_id))

    def farewell(self) -> None:
        """A chat about one message ends."""
        if self.working:
            self._talk.remark(f"{self._names(self.working)} {_go(self.working)} on in the background")

    async def carry_out(self, command: Command) -> None:
        """Raises ApiError and Unreachable."""
        match command.name, command.argument:
            case Name.AGENTS, "":
                await self._list()
            case Name.WATCH, "":
                self._watch_nobody()
            case Name.STOP, "all" | "force" as scope:
                await self._stop_more(scope)
            case name, wanted:
                act = {Name.AGENTS: self._look_at, Name.WATCH: self._watch, Name.STOP: self._stop}[name]
                await act(await self._found(wanted))

    # --- commands -------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        views = [view for view in (await self._talk.client.agents(self._talk.session_id)).agents if not view.ambient]
        rows = [row(view, self._talk.renderer.symbols) for view in views[-ROWS:]]
        self._talk.remark("\n".join(rows) or "this session has had no agents yet")

    async def _found(self, name: str) -> AgentView:
        """The agent that a person means: an id, a label, or how that of one that works begins."""
        if found := self._roster.named(name):
            return found[0]
        alike = [view for view in self._roster.live if view.label.lower().startswith(name.lower())]
        if len(alike) == 1:
            return alike[0]
        return (await self._talk.client.agent(self._talk.session_id, name)).agent

    async def _look_at(self, view: AgentView) -> None:
        talk, symbols = self._talk, self._talk.renderer.symbols
        details = await talk.client.agent(talk.session_id, view.id)
        lines = [f"{row(details.agent, symbols)}  ({clean(view.id)})"]
        if details.prompt:
            lines.append(f"asked: {one_line(details.prompt, BRIEF, symbols)}")
        page = await talk.client.agent_transcript(talk.session_id, view.id, ITEMS)
        if page.has_more_before:
            lines.append(symbols.more.strip())
        lines += [line for item in page.items for line in item_lines(item, symbols)]
        if view.kind in (AgentKind.SHELL, AgentKind.MONITOR):
            output = await talk.client.agent_output(talk.session_id, view.id, OUTPUT_BYTES)
            lines += [f"{symbols.output}{line}" for line in clean(output.text).splitlines()[-OUTPUT_LINES:]]
        if details.result_text:
            lines += ["result:", *clean(details.result_text).strip("\n").splitlines()]
        talk.remark("\n".join(lines))

    async def _watch(self, view: AgentView) -> None:
        """Begin, or read what is missing."""
        talk = self._talk
        if talk.live is None:
            return
        talk.live.subscribe(view.id)
        transcript = self._watched.get(view.id)
        if transcript is None:
            page = await talk.client.agent_transcript(talk.session_id, view.id, ITEMS)
            transcript = self._watched.setdefault(view.id, Transcript(view.id, (page.first_seq or 1) - 1))
            talk.remark(f"watching {called(view, talk.renderer.symbols)}; /watch ends it")
        else:
            page = await talk.client.agent_transcript(talk.session_id, view.id, PAGE, after_seq=transcript.seen)
        self._show(view.id, page.items)
        if len(page.items) == PAGE:
            talk.later(Command(Name.WATCH, view.id))

    def _watch_nobody(self) -> None:
        for agent_id in self._watched:
            if self._talk.live is not None:
                self._talk.live.unsubscribe(agent_id)
        self._talk.remark("no agent is watched any more" if self._watched else "/watch needs the name of an agent")
        self._watched.clear()

    async def _stop(self, view: AgentView) -> None:
        name = called(view, self._talk.renderer.symbols)
        answer = await self._talk.client.stop_agent(self._talk.session_id, view.id)
        if isinstance(answer, AgentAtRest):
            self._talk.remark(f"{kind_of(view)} {name} had ended already")
        elif (others := len(set(answer.stopping) - {view.id})) > 0:
            self._talk.remark(f"stopping {kind_of(view)} {name} and {others} that it started")
        else:
            self._talk.remark(f"stopping {kind_of(view)} {name}")

    async def _stop_more(self, scope: str) -> None:
        match await self._talk.client.stop(self._talk.session_id, scope):
            case AllStopped(stopping=stopping, unsupported=unsupported):
                if stopping:
                    self._talk.remark(f"stopping {self._names_of(stopping)}")
                if unsupported:
                    self._talk.complain(
                        f"{self._names_of(unsupported)} can't be stopped one by one; /stop force ends all"
                    )
                if not stopping and not unsupported:
                    self._talk.remark("nothing works in the background")
            case ForceStopped(ended=ended):
                self._talk.remark(f"ended {self._names_of(ended)}" if ended else "nothing runs any more")

    # --- words ----------------------------------------------------------------------------------------------------

    def _tell(self, change: AgentChange) -> None:
        named = change.now.id in self._named
        self._named.discard(change.now.id)
        if named and change.now.status is AgentStatus.COMPLETED:
            return
        if (said := told(change, self._talk.renderer.symbols, self._by)) is not None:
            self._held.append(said)
        if not self._flowing:
            self._say_held()

    def _let_finish(self, event: LiveEvent) -> None:
        """No line is cut in two: what is to be told waits for its end."""
        match event:
            case TokenFrame(content=content) | ThinkingFrame(content=content):
                self._flowing = not content.endswith("\n")
            case SessionStatusFrame() | SessionRunningFrame() | Disconnected():
                self._flowing = False
            case _ if isinstance(getattr(event, "seq", None), int):
                self._flowing = False
        if not self._flowing:
            self._say_held()

    def _say_held(self) -> None:
        for said in self._held:
            self._talk.mention(*said)
        self._held.clear()

    def _show(self, agent_id: str, items: list[AgentEventItem]) -> None:
        view, symbols = self._roster.get(agent_id), self._talk.renderer.symbols
        name = agent_id if view is None else called(view, symbols)
        for item in self._watched[agent_id].take(items):
            for line in item_lines(item, symbols):
                self._talk.mention(line, Tone.OUTPUT, f"{name} {symbols.output}")

    def _by(self, actor_id: str) -> str | None:
        renderer = self._talk.renderer
        return None if actor_id == renderer.me else renderer.names(actor_id)

    def _names_of(self, agent_ids: list[str]) -> str:
        views = [view for agent_id in agent_ids if (view := self._roster.get(agent_id)) is not None]
        return self._names(views) if len(views) == len(agent_ids) else f"{len(agent_ids)} agents"

    def _names(self, views: list[AgentView]) -> str:
        names = [f"{kind_of(view)} {called(view, self._talk.renderer.symbols)}" for view in views[:NAMED]]
        more = len(views) - NAMED
        return ", ".join(names) + (f" and {more} more" if more > 0 else "")


def _go(views: list[AgentView]) -> str:
    return "goes" if len(views) == 1 else "go"
