"""Faults that change the state of the process: descriptors, directory, signals, environment, interpreter."""

from __future__ import annotations

from chaos.faults.fault import Fault

CLOSED = "the event loop has lost its own descriptors"
SIGNALS = "the handler of the signal raises in the middle of the agent's code"

FAULTS = (
    Fault(
        "closes stdout",
        "os.close(1)",
    ),
    Fault(
        "closes every descriptor",
        "os.closerange(3, 4096)",
        ends=CLOSED,
    ),
    Fault(
        "closes sys.stdout",
        "sys.stdout.close()",
    ),
    Fault(
        "removes sys.stdout and sys.stderr",
        "sys.stdout = sys.stderr = None",
    ),
    Fault(
        "replaces sys.stdout by an object that raises",
        """
        class Odd:
            def __getattr__(self, name): raise ValueError("mine")
        sys.stdout = sys.stderr = Odd()
        """,
    ),
    Fault(
        "turns stdout and stderr into a full disk",
        """
        full = os.open("/dev/full", os.O_WRONLY)
        os.dup2(full, 1)
        os.dup2(full, 2)
        """,
    ),
    Fault(
        "changes the directory",
        'os.chdir("/")',
    ),
    Fault(
        "deletes the directory it is in",
        """
        import tempfile
        at = tempfile.mkdtemp()
        os.chdir(at)
        os.rmdir(at)
        """,
    ),
    Fault(
        "allows nothing to new files",
        "os.umask(0o777)",
    ),
    Fault(
        "allows everything to new files",
        "os.umask(0)",
    ),
    Fault(
        "empties the environment",
        "os.environ.clear()",
    ),
    Fault(
        "changes the home",
        'os.environ["HOME"] = os.environ["AGENT_HOME"] = "/nowhere"',
    ),
    Fault(
        "ignores the end of children",
        """
        import signal
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        """,
        ends="the system then tells no exit code of a program",
        where=("*/inline/*/host",),
    ),
    Fault(
        "ignores SIGINT and SIGTERM",
        """
        import signal
        for n in (signal.SIGINT, signal.SIGTERM):
            signal.signal(n, signal.SIG_IGN)
        """,
    ),
    Fault(
        "blocks every signal",
        """
        import signal
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
        """,
    ),
    Fault(
        "raises at a signal every 10 ms",
        """
        import signal
        def fail(*_): raise ValueError('mine')
        signal.signal(signal.SIGALRM, fail)
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
        """,
        ends=SIGNALS,
        # Each new process of the hook may be hit before it answers.
        closes=True,
    ),
    Fault(
        "lowers the recursion limit",
        "sys.setrecursionlimit(len(__import__('inspect').stack()) + 12)",
        ends="the limit holds for the agent too",
        where=("*/inline/*/host", "*/inline/*/wrapped"),
    ),
    Fault(
        "hardly switches threads",
        "sys.setswitchinterval(5)",
    ),
    Fault(
        "limits the digits of numbers",
        "sys.set_int_max_str_digits(640)",
    ),
    Fault(
        "changes the locale",
        """
        import locale
        try:
            locale.setlocale(locale.LC_ALL, "tr_TR.UTF-8")
        except locale.Error:
            locale.setlocale(locale.LC_ALL, "C")
        """,
    ),
    Fault(
        "raises at each collection",
        """
        import gc
        def fail(*_): raise ValueError
        gc.callbacks.append(fail)
        gc.collect()
        """,
        noisy=True,
    ),
    Fault(
        "traces and raises",
        """
        def fail(*_): raise ValueError('trace')
        sys.settrace(fail)
        (lambda: 1)()
        """,
    ),
    Fault(
        "makes every warning an error",
        """
        import warnings
        warnings.simplefilter("error")
        """,
    ),
    Fault(
        "shuts logging down",
        """
        import logging
        logging.shutdown()
        logging.disable(logging.CRITICAL)
        """,
    ),
    Fault(
        "makes logging raise",
        """
        import logging
        class Odd(logging.Handler):
            def emit(self, record): raise ValueError('log')
        logging.getLogger("agent_hooks").addHandler(Odd())
        logging.getLogger("agent_hooks").propagate = False
        """,
    ),
    Fault(
        "makes the default of sockets 1 ms",
        """
        import socket
        socket.setdefaulttimeout(0.001)
        """,
    ),
)
