"""``python -m tests.soak.health_probe PORT``: asks for ``/health`` twenty times a second, over one line.

A process of its own, so that only the server's answers are timed and not the crowd's own work.  Prints the seconds each
answer took, a line each, until its standard input ends.
"""

import http.client
import select
import sys
import time

ASK_SECONDS = 0.05


def main(port: int) -> None:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    while not select.select([sys.stdin], [], [], ASK_SECONDS)[0]:
        before = time.monotonic()
        line.request("GET", "/health")
        answer = line.getresponse()
        answer.read()
        assert answer.status == 200, answer.status
        print(time.monotonic() - before)


if __name__ == "__main__":
    main(int(sys.argv[1]))
