"""Operations of the area meta.  Generated from spec/ by `make contract`: do not edit."""

from nerve.contract.route import AuthMode, AuthPolicy, Document, NoBody, NoParams, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind




META_ASYNCAPI: Route[NoParams, NoBody, Document] = Route(
    operation_id='meta.asyncapi',
    method='GET',
    path='/asyncapi.json',
    params=NoParams,
    body=NoBody,
    body_required=False,
    replies={200: Document},
    kind=ReplyKind.DOCUMENT,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)

META_DOCS: Route[NoParams, NoBody, Document] = Route(
    operation_id='meta.docs',
    method='GET',
    path='/docs',
    params=NoParams,
    body=NoBody,
    body_required=False,
    replies={200: Document},
    kind=ReplyKind.HTML,
    auth=AuthPolicy.OPEN,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL},
)

META_OPENAPI: Route[NoParams, NoBody, Document] = Route(
    operation_id='meta.openapi',
    method='GET',
    path='/openapi.json',
    params=NoParams,
    body=NoBody,
    body_required=False,
    replies={200: Document},
    kind=ReplyKind.DOCUMENT,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)
