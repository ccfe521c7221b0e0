# Sets $python to a Python that is new enough; sourced by ./try and ./test.  NERVE_PYTHON names one outright.
for python in "${NERVE_PYTHON:-python3}" python3.11 python3.12 python3.13 python3.14 python3; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        return 0
    fi
done
echo "Nerve needs Python 3.11 or newer, and none was found on PATH (NERVE_PYTHON can name one)." >&2
exit 1
