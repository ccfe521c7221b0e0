"""A request of every operation that succeeds, made from the example in spec/ and what it needs to be there."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from attrs import evolve, field, frozen

from tests.conformance.staging import HELPER, SERVER, playing_agent
from tests.conformance.subject import PASSWORD, SocketTalk, Start, Subject, new_account, new_person, new_session, script
from tests.contract.spec_reader import Call
from tests.spec_client import Answer, SpecClient
from tests.spec_replies import BY_ID

NOWHERE = "no-such-thing"


@frozen
class Request:
    """One call that is ready to be sent, as often as wanted."""

    client: SpecClient
    operation_id: str
    path: Mapping[str, str] = field(factory=dict)
    body: Any = ...
    options: Mapping[str, Any] = field(factory=dict)

    def by(self, **credential: Any) -> "Request":
        """The same with another ``token``, ``host`` or ``headers``."""
        return evolve(self, client=self.client.with_(**credential))

    def raw(self, content: bytes, content_type: str = "application/json") -> "Request":
        return self.with_options(content=content, headers={"content-type": content_type})

    def with_options(self, **options: Any) -> "Request":
        return evolve(self, body=..., options={**self.options, **options})

    @property
    def query(self) -> Mapping[str, str]:
        """What it asks for there, for those who add to it."""
        return self.options.get("query", {})

    def asking(self, **query: str) -> "Request":
        """The same with more, or other, query parameters."""
        return evolve(self, options={**self.options, "query": {**self.query, **query}})

    def encoded(self) -> bytes:
        """The body as bytes; an empty object for an operation that can do without."""
        return json.dumps({} if self.body is ... else self.body).encode()

    async def send(self) -> Answer:
        return await self.client.call(self.operation_id, self.body, path=self.path, **self.options)


def start_of(operation_id: str) -> Start:
    """Where its success can be had."""
    return Start.UNCLAIMED if operation_id == "setup.claim" else Start.CLAIMED


async def valid(subject: Subject, operation_id: str) -> Request:
    """Makes what the request needs, and the request."""
    call = BY_ID[operation_id]
    recipe = SPECIAL.get(operation_id)
    if recipe is not None:
        return await recipe(subject, call)
    path = {name: await THINGS[name](subject) for name in path_names(call)}
    return Request(_caller(subject, call), operation_id, path, example_of(call), needed_options(call))


def bare(subject: Subject, operation_id: str) -> Request:
    """A request of the right form, for what is decided before anything is looked for.  It changes nothing of others."""
    call = BY_ID[operation_id]
    body = example_of(call)
    if operation_id in TAMED:
        body = {**body, **TAMED[operation_id](subject)}
    path = dict.fromkeys(path_names(call), NOWHERE)
    return Request(_caller(subject, call), operation_id, path, body, needed_options(call))


def _caller(subject: Subject, call: Call) -> SpecClient:
    return subject.anyone if call.nerve["auth"] == "open" else subject.owner


def path_names(call: Call) -> list[str]:
    return [parameter["name"] for parameter in call.raw.get("parameters", []) if parameter["in"] == "path"]


def query_of(call: Call) -> dict[str, dict[str, Any]]:
    """Query parameters by name, with their schemas."""
    return {p["name"]: p["schema"] for p in call.raw.get("parameters", []) if p["in"] == "query"}


def needed_options(call: Call) -> dict[str, Any]:
    """The query that an operation can't do without, from the examples of its parameters."""
    needed = {
        p["name"]: p["example"] for p in call.raw.get("parameters", []) if p["in"] == "query" and p.get("required")
    }
    return {"query": needed} if needed else {}


def headers_of(call: Call) -> dict[str, dict[str, Any]]:
    """Header parameters by name, with their schemas."""
    return {p["name"]: p["schema"] for p in call.raw.get("parameters", []) if p["in"] == "header"}


def example_of(call: Call) -> Any:
    """The example of its request body; ``...`` for an operation without one."""
    return next((media["example"] for part, media in call.contents() if part == "request"), ...)


# --- what has to be there -----------------------------------------------------------------------------------------


async def _session(subject: Subject) -> str:
    return await new_session(subject.owner)


async def _account(subject: Subject) -> str:
    return str((await new_account(subject))["id"])


async def _file(subject: Subject) -> str:
    session_id = await new_session(subject.owner)
    (file,) = (await upload(subject.owner, [("plan.txt", b"x")], session_id=session_id)).json["files"]
    return str(file["id"])


THINGS: Mapping[str, Callable[[Subject], Awaitable[str]]] = {
    "session_id": _session,
    "account_id": _account,
    "file_id": _file,
}


# What of an example would do something to others if ``bare`` sent it as it is.
TAMED: Mapping[str, Callable[[Subject], dict[str, Any]]] = {
    "accounts.change_password": lambda subject: {"current_password": None, "new_password": ""},
    "accounts.create": lambda subject: {"username": subject.unique("bob-")},
    "auth.login": lambda subject: {"username": subject.unique("nobody-")},
    "chat.send": lambda subject: {"session_id": NOWHERE},
    "scheduling.run_later": lambda subject: {"session_id": NOWHERE},
    "sessions.fork": lambda subject: {"source_session_id": NOWHERE},
}


async def _claim(subject: Subject, call: Call) -> Request:
    body = {**example_of(call), **subject.claim, "setup_token": await subject.setup_token()}
    return Request(subject.anyone, call.id, body=body)


async def _sign_in(subject: Subject, call: Call) -> Request:
    account = await new_account(subject)
    body = {**example_of(call), "username": account["username"], "password": PASSWORD}
    return Request(subject.anyone, call.id, body=body)


async def _chat(subject: Subject, call: Call) -> Request:
    body = {**example_of(call), "session_id": await new_session(subject.owner)}
    return Request(subject.owner, call.id, body=body)


async def _change_password(subject: Subject, call: Call) -> Request:
    person, _ = await new_person(subject)
    return Request(person, call.id, body={**example_of(call), "current_password": PASSWORD})


async def _create_account(subject: Subject, call: Call) -> Request:
    return Request(subject.owner, call.id, body={**example_of(call), "username": subject.unique("bob-")})


async def started_session(subject: Subject, *steps: str) -> str:
    """One that has run a turn of these steps."""
    session_id = await new_session(subject.owner)
    body = {"message": script(*steps or ("say: hello",)), "session_id": session_id}
    await subject.owner.ok("chat.send", body)
    return session_id


async def newest_message(subject: Subject, session_id: str) -> str:
    page = await subject.owner.ok("sessions.messages", path={"session_id": session_id})
    return str(page["messages"][-1]["id"])


async def _fork(subject: Subject, call: Call) -> Request:
    session_id = await started_session(subject)
    named = {"source_session_id": session_id, "at_message_id": await newest_message(subject, session_id)}
    return Request(subject.owner, call.id, body={**example_of(call), **named})


async def _resume(subject: Subject, call: Call) -> Request:
    session_id = await started_session(subject)
    await subject.owner.ok("sessions.archive", path={"session_id": session_id})
    return Request(subject.owner, call.id, {"session_id": session_id})


async def _cancel(subject: Subject, call: Call) -> Request:
    session_id = await new_session(subject.owner)
    queue_id = await queued_behind(subject.owner, session_id)
    return Request(subject.owner, call.id, {"session_id": session_id, "queue_id": queue_id})


async def _search(subject: Subject, call: Call) -> Request:
    return Request(subject.owner, call.id, options={"query": {"q": "launch"}})


async def _changed_file(subject: Subject, call: Call) -> Request:
    session_id = await new_session(subject.owner)
    path = await changed_by(subject.owner, session_id)
    return Request(subject.owner, call.id, {"session_id": session_id}, options={"query": {"path": path}})


async def changed_by(client: SpecClient, session_id: str) -> str:
    """The path of a file that a turn of the session has written."""
    async with client.connect({"session_id": session_id}) as socket:
        talk = SocketTalk(socket, session_id)
        await talk.say(script("{write: conformance.txt, content: x}"))
        frame = await talk.until("file_changed")
        await talk.until("session_running", lambda frame: not frame["is_running"])
    return str(frame["path"])


async def _downloadable(subject: Subject, call: Call) -> Request:
    path = await changed_by(subject.owner, await new_session(subject.owner))
    return Request(subject.owner, call.id, options={"query": {"path": path}})


async def _upload(subject: Subject, call: Call) -> Request:
    options = {**form(("plan.txt", b"x")), "query": {"session_id": await new_session(subject.owner)}}
    return Request(subject.owner, call.id, options=options)


def form(*files: tuple[str, bytes]) -> dict[str, Any]:
    """The body and the headers of a form with these files, as options of a call."""
    parts = b"".join(
        b'--cut\r\nContent-Disposition: form-data; name="files"; filename="%s"\r\n\r\n%s\r\n' % (name.encode(), content)
        for name, content in files
    )
    return {"content": parts + b"--cut--\r\n", "headers": {"content-type": "multipart/form-data; boundary=cut"}}


async def upload(client: SpecClient, files: list[tuple[str, bytes]], **query: str) -> Answer:
    return await client.call("files.upload", **form(*files), query=query)


async def queued_behind(client: SpecClient, session_id: str, first: str = "wait: 30", then: str = "say: done") -> str:
    """The queue id of a message that waits behind a turn of the step ``first``; it plays ``then``."""
    async with client.connect({"session_id": session_id}) as socket:
        talk = SocketTalk(socket, session_id)
        await talk.say(script(first))
        await talk.until("session_running")
        await talk.say(script(then))
        update = await talk.until("queue_update", lambda frame: frame["queue"] != [])
    return str(update["queue"][-1]["queue_id"])


async def _helper(subject: Subject, call: Call) -> Request:
    return Request(subject.owner, call.id, await playing_agent(subject.owner, HELPER), example_of(call))


async def _background_shell(subject: Subject, call: Call) -> Request:
    return Request(subject.owner, call.id, await playing_agent(subject.owner, SERVER))


SPECIAL: Mapping[str, Callable[[Subject, Call], Awaitable[Request]]] = {
    "setup.claim": _claim,
    "auth.login": _sign_in,
    "chat.send": _chat,
    "scheduling.run_later": _chat,
    "accounts.create": _create_account,
    "accounts.change_password": _change_password,
    "queue.cancel": _cancel,
    "sessions.fork": _fork,
    "sessions.resume": _resume,
    "search.sessions": _search,
    "files.diff": _changed_file,
    "files.upload": _upload,
    "files.download": _downloadable,
    "agents.get": _helper,
    "agents.transcript": _helper,
    "agents.output": _background_shell,
    "agents.stop": _helper,
}
