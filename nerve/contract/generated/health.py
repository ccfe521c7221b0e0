"""Operations of the area health.  Generated from spec/ by `make contract`: do not edit."""


from nerve.contract.generated.entities import Health
from nerve.contract.route import AuthMode, AuthPolicy, NoBody, NoParams, ReplyKind, Route, Work
from nerve.contract.generated.errors import ErrorCode, ErrorKind




HEALTH_GET: Route[NoParams, NoBody, Health] = Route(
    operation_id='health.get',
    method='GET',
    path='/health',
    params=NoParams,
    body=NoBody,
    body_required=False,
    replies={200: Health},
    kind=ReplyKind.JSON,
    auth=AuthPolicy.OPEN,
    refusal=ErrorCode.PERSON_REQUIRED,
    modes=frozenset({AuthMode.LOCAL, AuthMode.EXTERNAL}),
    work=Work.READ,
    any_host=True,
    headers=(),
    errors={ErrorCode.INTERNAL: ErrorKind.DETAIL},
)
