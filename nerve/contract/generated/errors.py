"""Every error that a client can be told.  Generated from spec/ by `make contract`: do not edit."""

from enum import StrEnum

from attrs import frozen


class ErrorKind(StrEnum):
    """The form of an error body; see spec/errors.yaml."""

    DETAIL = 'detail'
    FIELD = 'field'
    CODE = 'code'
    REASON = 'reason'
    VALIDATION = 'validation'


class ErrorCode(StrEnum):
    """The name of an error."""

    INTERNAL = 'internal'
    WRONG_HOST = 'wrong_host'
    NOT_FOUND = 'not_found'
    METHOD_NOT_ALLOWED = 'method_not_allowed'
    UNAUTHENTICATED = 'unauthenticated'
    IDENTITY_NOT_READY = 'identity_not_ready'
    PERSON_REQUIRED = 'person_required'
    FOREIGN_ORIGIN = 'foreign_origin'
    BODY_TOO_LARGE = 'body_too_large'
    UNSUPPORTED_MEDIA_TYPE = 'unsupported_media_type'
    INVALID_REQUEST = 'invalid_request'
    STORE_FULL = 'store_full'
    STORE_BUSY = 'store_busy'
    SHUTTING_DOWN = 'shutting_down'
    BAD_CREDENTIALS = 'bad_credentials'
    SETUP_INCOMPLETE = 'setup_incomplete'
    LOGIN_BUSY = 'login_busy'
    BAD_USERNAME = 'bad_username'
    PASSWORD_TOO_LONG = 'password_too_long'
    EMPTY_PASSWORD = 'empty_password'
    PASSWORD_OR_PASSWORDLESS = 'password_or_passwordless'
    USERNAME_REQUIRED = 'username_required'
    WRONG_SETUP_TOKEN = 'wrong_setup_token'
    SETUP_COMPLETE = 'setup_complete'
    ACCOUNTS_NEED_PERSON = 'accounts_need_person'
    ACCOUNT_NOT_FOUND = 'account_not_found'
    CURRENT_PASSWORD_REQUIRED = 'current_password_required'
    WRONG_CURRENT_PASSWORD = 'wrong_current_password'
    USERNAME_TAKEN = 'username_taken'
    FIRST_ACCOUNT_UNNAMED = 'first_account_unnamed'
    FIRST_ACCOUNT_PASSWORDLESS = 'first_account_passwordless'
    LAST_ENABLED_ACCOUNT = 'last_enabled_account'
    PASSWORDLESS_AMONG_OTHERS = 'passwordless_among_others'
    SESSION_NOT_FOUND = 'session_not_found'
    MAIN_IS_PERMANENT = 'main_is_permanent'
    UNKNOWN_BACKEND = 'unknown_backend'
    BACKEND_UNAVAILABLE = 'backend_unavailable'
    BAD_CWD = 'bad_cwd'
    EMPTY_MODEL = 'empty_model'
    EMPTY_TITLE = 'empty_title'
    NOTHING_TO_UPDATE = 'nothing_to_update'
    PARENT_CYCLE = 'parent_cycle'
    PARENT_NOT_FOUND = 'parent_not_found'
    SESSION_NOT_STARTED = 'session_not_started'
    MESSAGE_NOT_FOUND = 'message_not_found'
    NOT_FORKABLE = 'not_forkable'
    ANCHOR_NOT_MAPPED = 'anchor_not_mapped'
    NOT_RESUMABLE = 'not_resumable'
    EMPTY_QUERY = 'empty_query'
    BAD_SCOPE = 'bad_scope'
    QUEUE_ENTRY_NOT_FOUND = 'queue_entry_not_found'
    ALREADY_STARTED = 'already_started'
    NOT_OWNER = 'not_owner'
    FILE_NOT_FOUND = 'file_not_found'
    LIVE_BACKGROUND_AGENTS = 'live_background_agents'
    AGENT_NOT_FOUND = 'agent_not_found'
    AGENT_IN_OTHER_SESSION = 'agent_in_other_session'
    BAD_CURSOR = 'bad_cursor'
    NOT_A_SHELL = 'not_a_shell'
    NO_RUNTIME = 'no_runtime'
    UNSUPPORTED = 'unsupported'
    CHAT_FAILED = 'chat_failed'
    QUEUE_FULL = 'queue_full'
    FILE_TOO_LARGE = 'file_too_large'
    TOO_MANY_UPLOADS = 'too_many_uploads'
    UPLOADS_UNUSABLE = 'uploads_unusable'
    PATH_NOT_ALLOWED = 'path_not_allowed'
    SNAPSHOT_NOT_FOUND = 'snapshot_not_found'


@frozen
class ErrorSpec:
    """One declaration of spec/errors.yaml.  ``retry_after`` is in seconds."""

    status: int
    kind: ErrorKind
    message: str
    extra: tuple[str, ...] = ()
    retry_after: int | None = None
    varies: bool = False


ERRORS: dict[ErrorCode, ErrorSpec] = {
    ErrorCode.INTERNAL: ErrorSpec(500, ErrorKind.DETAIL, 'Internal server error'),
    ErrorCode.WRONG_HOST: ErrorSpec(421, ErrorKind.DETAIL, 'This server does not answer for the host {host}; add it to gateway.allowed_hosts.'),
    ErrorCode.NOT_FOUND: ErrorSpec(404, ErrorKind.DETAIL, 'Not Found'),
    ErrorCode.METHOD_NOT_ALLOWED: ErrorSpec(405, ErrorKind.DETAIL, 'Method Not Allowed'),
    ErrorCode.UNAUTHENTICATED: ErrorSpec(401, ErrorKind.DETAIL, 'Not authenticated'),
    ErrorCode.IDENTITY_NOT_READY: ErrorSpec(503, ErrorKind.DETAIL, 'Authentication is not ready', retry_after=2),
    ErrorCode.PERSON_REQUIRED: ErrorSpec(403, ErrorKind.DETAIL, 'This needs a signed-in person.'),
    ErrorCode.FOREIGN_ORIGIN: ErrorSpec(403, ErrorKind.DETAIL, 'Requests from this origin are not allowed.'),
    ErrorCode.BODY_TOO_LARGE: ErrorSpec(413, ErrorKind.DETAIL, 'The request body is larger than {limit} bytes.'),
    ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorSpec(415, ErrorKind.DETAIL, 'The request body must be {media_type}.'),
    ErrorCode.INVALID_REQUEST: ErrorSpec(422, ErrorKind.VALIDATION, 'The request does not fit its schema.'),
    ErrorCode.STORE_FULL: ErrorSpec(503, ErrorKind.DETAIL, 'The disk is full; nothing was written.', retry_after=30),
    ErrorCode.STORE_BUSY: ErrorSpec(503, ErrorKind.DETAIL, 'The database is busy; try again.', retry_after=2),
    ErrorCode.SHUTTING_DOWN: ErrorSpec(503, ErrorKind.DETAIL, 'The server is shutting down.', retry_after=5),
    ErrorCode.BAD_CREDENTIALS: ErrorSpec(401, ErrorKind.DETAIL, 'Invalid username or password'),
    ErrorCode.SETUP_INCOMPLETE: ErrorSpec(409, ErrorKind.DETAIL, 'Setup of this instance is not complete; claim it first.'),
    ErrorCode.LOGIN_BUSY: ErrorSpec(503, ErrorKind.DETAIL, 'Too many passwords wait to be checked; try again.', retry_after=2),
    ErrorCode.BAD_USERNAME: ErrorSpec(400, ErrorKind.DETAIL, 'A username has 1 to 32 characters, a-z, 0-9, dot, dash or underscore, starts with a letter or digit, and is not a reserved word.'),
    ErrorCode.PASSWORD_TOO_LONG: ErrorSpec(400, ErrorKind.DETAIL, 'A password has at most 72 bytes in UTF-8.'),
    ErrorCode.EMPTY_PASSWORD: ErrorSpec(400, ErrorKind.DETAIL, 'The password is empty.'),
    ErrorCode.PASSWORD_OR_PASSWORDLESS: ErrorSpec(400, ErrorKind.DETAIL, 'Send either a password or "passwordless" true, not both and not neither.'),
    ErrorCode.USERNAME_REQUIRED: ErrorSpec(400, ErrorKind.DETAIL, 'A claim with a password needs a username.'),
    ErrorCode.WRONG_SETUP_TOKEN: ErrorSpec(403, ErrorKind.DETAIL, 'The setup token is not valid.'),
    ErrorCode.SETUP_COMPLETE: ErrorSpec(409, ErrorKind.DETAIL, 'Setup of this instance is complete already.'),
    ErrorCode.ACCOUNTS_NEED_PERSON: ErrorSpec(403, ErrorKind.DETAIL, 'Accounts are managed by a signed-in person.'),
    ErrorCode.ACCOUNT_NOT_FOUND: ErrorSpec(404, ErrorKind.DETAIL, 'Account not found'),
    ErrorCode.CURRENT_PASSWORD_REQUIRED: ErrorSpec(403, ErrorKind.DETAIL, 'The current password is needed to change it.'),
    ErrorCode.WRONG_CURRENT_PASSWORD: ErrorSpec(403, ErrorKind.DETAIL, 'The current password is not correct.'),
    ErrorCode.USERNAME_TAKEN: ErrorSpec(409, ErrorKind.DETAIL, 'Another account has this username.'),
    ErrorCode.FIRST_ACCOUNT_UNNAMED: ErrorSpec(409, ErrorKind.DETAIL, 'The first account has no username; give it one before adding another account.'),
    ErrorCode.FIRST_ACCOUNT_PASSWORDLESS: ErrorSpec(409, ErrorKind.DETAIL, 'The first account has no password; set one before adding another account.'),
    ErrorCode.LAST_ENABLED_ACCOUNT: ErrorSpec(409, ErrorKind.DETAIL, 'This is the last enabled account; without it nobody could sign in.'),
    ErrorCode.PASSWORDLESS_AMONG_OTHERS: ErrorSpec(409, ErrorKind.DETAIL, "An account without a password can't be enabled while other accounts exist."),
    ErrorCode.SESSION_NOT_FOUND: ErrorSpec(404, ErrorKind.DETAIL, 'Session not found'),
    ErrorCode.MAIN_IS_PERMANENT: ErrorSpec(400, ErrorKind.DETAIL, 'The session main can be neither deleted nor archived.'),
    ErrorCode.UNKNOWN_BACKEND: ErrorSpec(400, ErrorKind.DETAIL, 'There is no agent runtime called {backend}.'),
    ErrorCode.BACKEND_UNAVAILABLE: ErrorSpec(503, ErrorKind.DETAIL, 'The agent runtime is not available.', varies=True),
    ErrorCode.BAD_CWD: ErrorSpec(400, ErrorKind.DETAIL, "The working directory can't be used.", varies=True),
    ErrorCode.EMPTY_MODEL: ErrorSpec(400, ErrorKind.DETAIL, 'The model is empty.'),
    ErrorCode.EMPTY_TITLE: ErrorSpec(400, ErrorKind.DETAIL, 'The title is empty.'),
    ErrorCode.NOTHING_TO_UPDATE: ErrorSpec(400, ErrorKind.DETAIL, 'Nothing to update; send title, starred, model or parent_session_id.'),
    ErrorCode.PARENT_CYCLE: ErrorSpec(400, ErrorKind.DETAIL, "A session can't be its own ancestor."),
    ErrorCode.PARENT_NOT_FOUND: ErrorSpec(404, ErrorKind.DETAIL, 'Parent session not found'),
    ErrorCode.SESSION_NOT_STARTED: ErrorSpec(409, ErrorKind.DETAIL, "A session that has not run yet can't be moved to another parent."),
    ErrorCode.MESSAGE_NOT_FOUND: ErrorSpec(404, ErrorKind.DETAIL, 'The session has no such message.'),
    ErrorCode.NOT_FORKABLE: ErrorSpec(409, ErrorKind.DETAIL, 'The session has no conversation yet that could be forked; one of its turns has to end first.'),
    ErrorCode.ANCHOR_NOT_MAPPED: ErrorSpec(409, ErrorKind.DETAIL, "The agent's conversation can't be forked at this message; choose another one or fork the session as a whole."),
    ErrorCode.NOT_RESUMABLE: ErrorSpec(400, ErrorKind.DETAIL, 'The session has no conversation that could be resumed.'),
    ErrorCode.EMPTY_QUERY: ErrorSpec(400, ErrorKind.DETAIL, 'The text to search for is empty.'),
    ErrorCode.BAD_SCOPE: ErrorSpec(422, ErrorKind.CODE, 'The scope is turn, all or force.'),
    ErrorCode.QUEUE_ENTRY_NOT_FOUND: ErrorSpec(404, ErrorKind.CODE, 'No such entry in the queue.'),
    ErrorCode.ALREADY_STARTED: ErrorSpec(409, ErrorKind.CODE, 'The message is running already.'),
    ErrorCode.NOT_OWNER: ErrorSpec(403, ErrorKind.CODE, 'Only the person who sent a message can cancel it.'),
    ErrorCode.FILE_NOT_FOUND: ErrorSpec(404, ErrorKind.DETAIL, 'File not found'),
    ErrorCode.LIVE_BACKGROUND_AGENTS: ErrorSpec(409, ErrorKind.CODE, 'A new model would end the background agents of the session, {live} of which are running.', extra=('live',)),
    ErrorCode.AGENT_NOT_FOUND: ErrorSpec(404, ErrorKind.CODE, 'The session has no such agent.'),
    ErrorCode.AGENT_IN_OTHER_SESSION: ErrorSpec(404, ErrorKind.CODE, 'The agent belongs to the session that this one was forked from.', extra=('owner_session_id',)),
    ErrorCode.BAD_CURSOR: ErrorSpec(400, ErrorKind.CODE, 'Give one cursor at most, before_seq or after_seq, a whole number from 0 on.'),
    ErrorCode.NOT_A_SHELL: ErrorSpec(409, ErrorKind.CODE, 'Only shells and monitors have an output file.'),
    ErrorCode.NO_RUNTIME: ErrorSpec(409, ErrorKind.CODE, "The session's agent runtime is gone."),
    ErrorCode.UNSUPPORTED: ErrorSpec(501, ErrorKind.CODE, "The session's agent runtime can't stop one agent."),
    ErrorCode.CHAT_FAILED: ErrorSpec(502, ErrorKind.DETAIL, 'The turn failed.', varies=True),
    ErrorCode.QUEUE_FULL: ErrorSpec(429, ErrorKind.DETAIL, 'Too many messages wait in this session.', retry_after=5),
    ErrorCode.FILE_TOO_LARGE: ErrorSpec(413, ErrorKind.DETAIL, 'The file {filename} is larger than {limit} bytes; nothing was kept.'),
    ErrorCode.TOO_MANY_UPLOADS: ErrorSpec(409, ErrorKind.DETAIL, 'Too many of your uploads have not been sent with a message yet; unsent ones go after a day.'),
    ErrorCode.UPLOADS_UNUSABLE: ErrorSpec(503, ErrorKind.DETAIL, "The directory of uploads can't be used.", retry_after=30),
    ErrorCode.PATH_NOT_ALLOWED: ErrorSpec(403, ErrorKind.DETAIL, "This path can't be read."),
    ErrorCode.SNAPSHOT_NOT_FOUND: ErrorSpec(404, ErrorKind.DETAIL, 'This session has not changed such a file.'),
}
