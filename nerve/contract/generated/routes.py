"""The route table.  Generated from spec/ by `make contract`: do not edit."""

from typing import Any

from nerve.contract.generated.accounts import ACCOUNTS_CHANGE_PASSWORD, ACCOUNTS_CREATE, ACCOUNTS_DISABLE, ACCOUNTS_ENABLE, ACCOUNTS_LIST, ACCOUNTS_ME, ACCOUNTS_UPDATE
from nerve.contract.generated.actors import ACTORS_LIST
from nerve.contract.generated.agents import AGENTS_GET, AGENTS_LIST, AGENTS_OUTPUT, AGENTS_STOP, AGENTS_TRANSCRIPT
from nerve.contract.generated.auth import AUTH_CHECK, AUTH_LOGIN, AUTH_ME, AUTH_STATUS
from nerve.contract.generated.chat import CHAT_SEND
from nerve.contract.generated.files import FILES_DIFF, FILES_DOWNLOAD, FILES_MODIFIED, FILES_UPLOAD, FILES_UPLOADED
from nerve.contract.generated.health import HEALTH_GET
from nerve.contract.generated.meta import META_ASYNCAPI, META_DOCS, META_OPENAPI
from nerve.contract.generated.queue import QUEUE_CANCEL, QUEUE_LIST
from nerve.contract.generated.scheduling import SCHEDULING_RUN_LATER
from nerve.contract.generated.search import SEARCH_SESSIONS
from nerve.contract.generated.sessions import SESSIONS_ARCHIVE, SESSIONS_ARCHIVED, SESSIONS_CREATE, SESSIONS_DELETE, SESSIONS_EVENTS, SESSIONS_FORK, SESSIONS_GET, SESSIONS_LIST, SESSIONS_MESSAGES, SESSIONS_RESUME, SESSIONS_STATUS, SESSIONS_STOP, SESSIONS_STREAM, SESSIONS_SYSTEM, SESSIONS_UNARCHIVE, SESSIONS_UPDATE
from nerve.contract.generated.setup import SETUP_CLAIM
from nerve.contract.route import Route

ROUTES: tuple[Route[Any, Any, Any], ...] = (
    ACCOUNTS_CHANGE_PASSWORD,
    ACCOUNTS_CREATE,
    ACCOUNTS_DISABLE,
    ACCOUNTS_ENABLE,
    ACCOUNTS_LIST,
    ACCOUNTS_ME,
    ACCOUNTS_UPDATE,
    ACTORS_LIST,
    AGENTS_GET,
    AGENTS_LIST,
    AGENTS_OUTPUT,
    AGENTS_STOP,
    AGENTS_TRANSCRIPT,
    AUTH_CHECK,
    AUTH_LOGIN,
    AUTH_ME,
    AUTH_STATUS,
    CHAT_SEND,
    FILES_DIFF,
    FILES_DOWNLOAD,
    FILES_MODIFIED,
    FILES_UPLOAD,
    FILES_UPLOADED,
    HEALTH_GET,
    META_ASYNCAPI,
    META_DOCS,
    META_OPENAPI,
    QUEUE_CANCEL,
    QUEUE_LIST,
    SCHEDULING_RUN_LATER,
    SEARCH_SESSIONS,
    SESSIONS_ARCHIVE,
    SESSIONS_ARCHIVED,
    SESSIONS_CREATE,
    SESSIONS_DELETE,
    SESSIONS_EVENTS,
    SESSIONS_FORK,
    SESSIONS_GET,
    SESSIONS_LIST,
    SESSIONS_MESSAGES,
    SESSIONS_RESUME,
    SESSIONS_STATUS,
    SESSIONS_STOP,
    SESSIONS_STREAM,
    SESSIONS_SYSTEM,
    SESSIONS_UNARCHIVE,
    SESSIONS_UPDATE,
    SETUP_CLAIM,
)
