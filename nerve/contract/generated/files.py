"""Operations of the area files.  Generated from spec/ by `make contract`: do not edit."""

from datetime import datetime
from enum import StrEnum

from attrs import field, frozen

from nerve.contract.generated.entities import DiffStats, FileStatus
from nerve.contract.route import AuthMode, AuthPolicy, BodyStream, FileReply, NoBody, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind
from nerve.contract.unset import UNSET, Unset


class DiffLineType(StrEnum):
    """One of the values that spec/ lists."""
    CONTEXT = 'context'
    ADDITION = 'addition'
    DELETION = 'deletion'


@frozen(kw_only=True)
class DiffLine:
    """files.diff.hunks.lines of spec/."""

    type: DiffLineType
    content: str
    old_line: int | Unset = field(default=UNSET, metadata={'minimum': 1})
    new_line: int | Unset = field(default=UNSET, metadata={'minimum': 1})


@frozen(kw_only=True)
class DiffHunk:
    """files.diff.hunks of spec/."""

    old_start: int = field(metadata={'minimum': 0})
    old_count: int = field(metadata={'minimum': 0})
    new_start: int = field(metadata={'minimum': 0})
    new_count: int = field(metadata={'minimum': 0})
    header: str
    lines: list[DiffLine]


@frozen(kw_only=True)
class FileDiff:
    """files.diff of spec/."""

    path: str
    short_path: str
    status: FileStatus
    binary: bool
    stats: DiffStats
    hunks: list[DiffHunk]
    truncated: bool
    markdown_content: str | None
    markdown_truncated: bool


@frozen(kw_only=True)
class FilesDiffParams:
    """Parameters of files.diff."""

    session_id: str
    path: str = field(metadata={'max_length': 4096})
    context: int = field(default=4, metadata={'minimum': 0, 'maximum': 2000, 'clamp': True})


@frozen(kw_only=True)
class FilesDownloadParams:
    """Parameters of files.download."""

    path: str = field(metadata={'max_length': 4096})


@frozen(kw_only=True)
class ModifiedFile:
    """files.modified.files of spec/."""

    path: str
    short_path: str
    status: FileStatus
    stats: DiffStats
    created_at: datetime


@frozen(kw_only=True)
class ModifiedSummary:
    """files.modified.summary of spec/."""

    total_files: int = field(metadata={'minimum': 0})
    total_additions: int = field(metadata={'minimum': 0})
    total_deletions: int = field(metadata={'minimum': 0})


@frozen(kw_only=True)
class ModifiedFiles:
    """files.modified of spec/."""

    files: list[ModifiedFile]
    summary: ModifiedSummary


@frozen(kw_only=True)
class FilesModifiedParams:
    """Parameters of files.modified."""

    session_id: str


class UploadedFileType(StrEnum):
    """One of the values that spec/ lists."""
    IMAGE = 'image'
    FILE = 'file'


@frozen(kw_only=True)
class UploadedFile:
    """files.upload.files of spec/."""

    id: str
    filename: str
    media_type: str
    file_type: UploadedFileType
    size: int = field(metadata={'minimum': 0})


@frozen(kw_only=True)
class UploadedFiles:
    """files.upload of spec/."""

    files: list[UploadedFile]


@frozen(kw_only=True)
class FilesUploadParams:
    """Parameters of files.upload."""

    session_id: str = field(default='', metadata={'max_length': 200})


@frozen(kw_only=True)
class FilesUploadedParams:
    """Parameters of files.uploaded."""

    file_id: str


FILES_DIFF: Route[FilesDiffParams, NoBody, FileDiff] = Route(
    operation_id='files.diff',
    method='GET',
    path='/api/sessions/{session_id}/file-diff',
    params=FilesDiffParams,
    body=NoBody,
    body_required=False,
    replies={200: FileDiff},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.SNAPSHOT_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

FILES_DOWNLOAD: Route[FilesDownloadParams, NoBody, FileReply] = Route(
    operation_id='files.download',
    method='GET',
    path='/api/files/download',
    params=FilesDownloadParams,
    body=NoBody,
    body_required=False,
    replies={200: FileReply},
    kind=ReplyKind.FILE,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.PATH_NOT_ALLOWED: ErrorKind.DETAIL, ErrorCode.FILE_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION},
)

FILES_MODIFIED: Route[FilesModifiedParams, NoBody, ModifiedFiles] = Route(
    operation_id='files.modified',
    method='GET',
    path='/api/sessions/{session_id}/modified-files',
    params=FilesModifiedParams,
    body=NoBody,
    body_required=False,
    replies={200: ModifiedFiles},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)

FILES_UPLOAD: Route[FilesUploadParams, BodyStream, UploadedFiles] = Route(
    operation_id='files.upload',
    method='POST',
    path='/api/files/upload',
    params=FilesUploadParams,
    body=BodyStream,
    body_required=True,
    replies={200: UploadedFiles},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.WRITE,
    any_host=False,
    headers=(),
    media_type='multipart/form-data',
    max_body_bytes=52428800,
    errors={ErrorCode.SESSION_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.FILE_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.TOO_MANY_UPLOADS: ErrorKind.DETAIL, ErrorCode.UPLOADS_UNUSABLE: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL, ErrorCode.FOREIGN_ORIGIN: ErrorKind.DETAIL, ErrorCode.BODY_TOO_LARGE: ErrorKind.DETAIL, ErrorCode.UNSUPPORTED_MEDIA_TYPE: ErrorKind.DETAIL, ErrorCode.INVALID_REQUEST: ErrorKind.VALIDATION, ErrorCode.STORE_FULL: ErrorKind.DETAIL, ErrorCode.STORE_BUSY: ErrorKind.DETAIL},
)

FILES_UPLOADED: Route[FilesUploadedParams, NoBody, FileReply] = Route(
    operation_id='files.uploaded',
    method='GET',
    path='/api/files/uploads/{file_id}',
    params=FilesUploadedParams,
    body=NoBody,
    body_required=False,
    replies={200: FileReply},
    kind=ReplyKind.FILE,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.FILE_NOT_FOUND: ErrorKind.DETAIL, ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)
