"""Faults that use up memory, descriptors, threads, output and limits."""

from __future__ import annotations

from chaos.faults.fault import Fault

LIMIT = "the limit holds for the agent too"
LOG = "the output goes to the server's log, so the disk holds the event loop until it has written 1 GB"
IN_SERVER = ("*/inline/*/server",)


def _flood(name: str, stream: str) -> Fault:
    """Return the fault that prints 1 GB on a stream."""
    code = f"""
        for _ in range(1024):
            sys.{stream}.write("x" * (1 << 20))
        sys.{stream}.flush()
        """
    return Fault(name, code, ends=LOG, where=IN_SERVER, closes=True)


def _limit(name: str, limit: str, soft: str, *further: str) -> Fault:
    """Return the fault that lowers a limit of the process, and then runs further lines."""
    lower = f"resource.setrlimit(resource.RLIMIT_{limit}, ({soft}, resource.getrlimit(resource.RLIMIT_{limit})[1]))"
    return Fault(name, "\n".join(["import resource", lower, *further]), ends=LIMIT)


FAULTS = (
    Fault(
        "allocates 1 GB",
        'big = b"x" * (1 << 30)',
    ),
    _flood("prints 1 GB", "stdout"),
    _flood("prints 1 GB on stderr", "stderr"),
    Fault(
        "prints a text that looks like a protocol",
        """
        print('{"type": "response"}')
        print("[0, {}]", flush=True)
        """,
    ),
    Fault(
        "opens every descriptor",
        """
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        sys.kept_by_a_hook = []
        try:
            while True:
                sys.kept_by_a_hook.append(os.open("/dev/null", 0))
        except OSError:
            pass
        """,
        ends="no program can be started without a descriptor",
    ),
    _limit("allows no more descriptors", "NOFILE", "3"),
    _limit("allows no files on the disk", "FSIZE", "0"),
    _limit("allows a second of computing", "CPU", "1", "while True:", "    pass"),
    _limit("allows no more memory", "AS", "1 << 20"),
    Fault(
        "starts 500 threads",
        """
        for _ in range(500):
            threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start()
        """,
    ),
)
