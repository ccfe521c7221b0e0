"""Operations of the area actors.  Generated from spec/ by `make contract`: do not edit."""


from attrs import frozen

from nerve.contract.generated.entities import Actor
from nerve.contract.route import AuthMode, AuthPolicy, NoBody, NoParams, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind


@frozen(kw_only=True)
class ActorList:
    """actors.list of spec/."""

    actors: list[Actor]


ACTORS_LIST: Route[NoParams, NoBody, ActorList] = Route(
    operation_id='actors.list',
    method='GET',
    path='/api/actors',
    params=NoParams,
    body=NoBody,
    body_required=False,
    replies={200: ActorList},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.ANY,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=False,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL, ErrorCode.WRONG_HOST: ErrorKind.DETAIL, ErrorCode.UNAUTHENTICATED: ErrorKind.DETAIL, ErrorCode.IDENTITY_NOT_READY: ErrorKind.DETAIL},
)
