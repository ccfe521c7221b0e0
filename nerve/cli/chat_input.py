"""What a line at the prompt asks for, and what ^C means at the moment.  No I/O."""

from enum import Enum

from attrs import define, frozen

HELP = """\
/help           this list
/sessions       the newest conversations
/switch ID      go on in another session
/new [TITLE]    begin a new session
/fork [TITLE]   go on in a copy of this session, which stays as it is
/history [N]    the last N messages (10)
/queue          what waits
/cancel ID      take a message back that waits
/stop [NAME]    stop the turn (also ^C), or one agent and what it started;
                `all`: every agent and the turn, `force`: whatever runs
/agents [NAME]  what works in the background; one of them, and its last steps
/watch [NAME]   see what one of them does, live; without NAME no more
/quit           leave (also ^D); a running turn goes on
While the agent asks something, lines are answers.
/refuse [WHY]   refuse it; WHY reaches the agent as it is
/skip, /back    leave an optional question out, go back to the one before
/edit           change the plan in $EDITOR, and approve it
/later          put it aside, to talk; /answer takes it up again
Anything else is a message; while a turn runs, it waits.  Two slashes send a
line that begins with one; Alt-Enter begins a new line."""


class Name(Enum):
    HELP = "help"
    SESSIONS = "sessions"
    SWITCH = "switch"
    NEW = "new"
    FORK = "fork"
    HISTORY = "history"
    QUEUE = "queue"
    CANCEL = "cancel"
    STOP = "stop"
    AGENTS = "agents"
    WATCH = "watch"
    QUIT = "quit"
    REFUSE = "refuse"
    SKIP = "skip"
    BACK = "back"
    EDIT = "edit"
    LATER = "later"
    ANSWER = "answer"


# What is about an interaction, and asks the server nothing else.
ABOUT_ASKED = frozenset({Name.REFUSE, Name.SKIP, Name.BACK, Name.EDIT, Name.LATER, Name.ANSWER})
# What is about the agents of the session, but for a stop of the turn.
ABOUT_AGENTS = frozenset({Name.AGENTS, Name.WATCH, Name.STOP})
_NEED_ARGUMENT = {Name.SWITCH, Name.CANCEL}
_TAKE_NONE = {Name.HELP, Name.SESSIONS, Name.QUEUE, Name.QUIT, *ABOUT_ASKED} - {Name.REFUSE}


@frozen
class Say:
    text: str


@frozen
class Command:
    name: Name
    argument: str = ""


@frozen
class Mistaken:
    """A line that asks for nothing there is; ``reason`` is for the person."""

    reason: str


def parse(line: str) -> Say | Command | Mistaken | None:
    """What a line asks for; None for an empty one."""
    if not line.strip():
        return None
    if line.startswith("//"):
        return Say(line[1:])
    if not line.startswith("/") or "\n" in line:
        return Say(line)
    word, _, argument = line[1:].strip().partition(" ")
    argument = argument.strip()
    try:
        name = Name(word.lower())
    except ValueError:
        return Mistaken(f"there is no /{word}; /help lists what there is")
    if name in _NEED_ARGUMENT and not argument:
        return Mistaken(f"/{word} needs an id")
    if name in _TAKE_NONE and argument:
        return Mistaken(f"/{word} takes nothing behind it")
    if name is Name.HISTORY and argument and not (argument.isascii() and argument.isdigit()):
        return Mistaken("/history takes a number")
    return Command(name, argument)


class Reaction(Enum):
    """What an interrupt brings about."""

    CLEAR = "clear"
    STOP = "stop"
    AGENTS = "agents"
    WATCH = "watch"
    TAKE_BACK = "take back"
    HINT = "hint"
    LEAVE = "leave"


@define
class Interrupts:
    """The first ^C stops what runs, a second one leaves; whatever is typed or ends in between starts over."""

    _asked: bool = False

    def forget(self) -> None:
        self._asked = False

    def interrupt(self, *, typing: bool, running: bool, waiting: bool, interactive: bool) -> Reaction:
        """``running``: there is a turn to stop; ``waiting``: what this chat is for has not begun yet."""
        if typing:
            self._asked = False
            return Reaction.CLEAR
        if self._asked:
            return Reaction.LEAVE
        self._asked = True
        if waiting:
            return Reaction.TAKE_BACK
        if running:
            return Reaction.STOP
        return Reaction.HINT if interactive else Reaction.LEAVE
