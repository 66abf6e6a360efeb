"""No descriptors, no memory to spare, no room on the disk of the log: it goes on, and recovers."""

import contextlib
import ctypes
import os
import resource
import socket
import subprocess
import time
import unittest

from harness import (
    LIMITS, SALLYPORT, Case, Connection, curl, ours_alone, serve_hello, status_of, wait_until,
)

CONFIG = """
global
    nbthread 2
    @more@
defaults
    mode http
    retries 1
""" + LIMITS + """
    timeout queue 2s
listen web
    bind 127.0.0.1:@web@
    server s1 127.0.0.1:@server@
"""

REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


def no_capabilities_and_few_descriptors(count):
    """Even root cannot raise the limit again."""
    library = ctypes.CDLL(None, use_errno=True)

    def apply():
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
        library.prctl(24, 24, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_SYS_RESOURCE

    return apply


@ours_alone
class Descriptors(Case):
    """HAProxy does not start when the limit is below what it computes."""

    def start(self, limit, more=""):
        self.backend = self.server(serve_hello)
        return self.proxy(CONFIG, server=self.backend.port, more=more,
                          preexec_fn=no_capabilities_and_few_descriptors(limit))

    def crowd(self, proxy, count):
        """Connections that nobody waits for: some are made, some stay in the kernel's queues."""
        socks = []
        for _ in range(count):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(("127.0.0.1", proxy.ports["web"]))
            self.addCleanup(sock.close)
            socks.append(sock)
        time.sleep(0.3)
        return socks

    def test_more_clients_than_descriptors(self):
        """Those who fit are served; the others wait or are refused; afterwards all is as before."""
        proxy = self.start(120)
        before = proxy.descriptors()
        socks, served = self.crowd(proxy, 300), 0
        for sock in socks:
            with contextlib.suppress(OSError):
                sock.send(REQUEST)
        time.sleep(0.5)
        for sock in socks:
            with contextlib.suppress(OSError):
                served += status_of(sock.recv(4096)) == 200
        self.assertGreaterEqual(served, 5)
        self.assertTrue(proxy.is_running())
        self.assertLessEqual(proxy.descriptors(), 120)
        for sock in socks:
            sock.close()

        def works():
            done = curl("--max-time", "2", proxy.url("web"), check=False)
            return done.stdout == "hello\n"

        wait_until(works, "service after the crowd", 15)
        wait_until(lambda: proxy.descriptors() <= before + 6, "the descriptors to be given back", 15)

    def test_it_does_not_spin(self):
        """With no descriptor left the processor is not kept busy asking for one."""
        proxy = self.start(60)
        for sock in self.crowd(proxy, 150):
            with contextlib.suppress(OSError):
                sock.send(REQUEST)
        time.sleep(0.5)

        def cpu_seconds():
            with open("/proc/%d/stat" % proxy.pid, encoding="ascii") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

        began = cpu_seconds()
        time.sleep(1.5)
        self.assertLess(cpu_seconds() - began, 0.6)

    def test_maxconn_is_lowered_and_said(self):
        proxy = self.start(300, "maxconn 5000")
        self.assertRegex(proxy.output(), "warning: .*maxconn.*300")
        self.assertEqual(curl(proxy.url("web")), "hello\n")

    def test_ulimit_n_that_cannot_be_had_is_an_error(self):
        config = CONFIG.replace("@more@", "ulimit-n 5000").replace("@web@", "1").replace("@server@", "1")
        path = self.write("u.cfg", config)
        done = subprocess.run([SALLYPORT, "-f", path], capture_output=True, text=True, check=False, timeout=20,
                              preexec_fn=no_capabilities_and_few_descriptors(300))
        self.assertEqual(done.returncode, 1)
        self.assertIn("ulimit-n", done.stderr)


class Output(Case):
    def test_a_log_that_cannot_be_written(self):
        """A full disk or a closed pipe behind stdout costs log lines, never requests."""
        backend = self.server(serve_hello)
        reader, writer = os.pipe()
        config = CONFIG.replace("defaults\n", "defaults\n    log stdout format raw local0\n    option httplog\n")
        for name, output in (("full", "/dev/full"), ("pipe", None)):
            with self.subTest(name):
                def redirect(output=output):
                    os.dup2(os.open(output, os.O_WRONLY) if output else writer, 1)

                proxy = self.proxy(config, server=backend.port, more="", name=name, preexec_fn=redirect)
                if name == "pipe":
                    os.close(reader)
                    os.close(writer)
                for _ in range(20):
                    self.assertEqual(curl(proxy.url("web")), "hello\n")
                proxy.stop()

    def test_a_log_reader_that_stops(self):
        """A pipe that nobody empties: requests go on when it is full."""
        backend = self.server(serve_hello)
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        config = CONFIG.replace("defaults\n", "defaults\n    log stdout format raw local0\n    option httplog\n")
        proxy = self.proxy(config, server=backend.port, more="", preexec_fn=lambda: os.dup2(writer, 1))
        os.close(writer)
        with proxy.connect("web", 5) as sock:
            client = Connection(sock)
            for _ in range(1500):
                client.send(b"GET /" + b"l" * 100 + b" HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertEqual(client.response()[0], 200)
        os.set_blocking(reader, False)
        proxy.signal(15)
        deadline = time.monotonic() + 10
        while proxy.is_running() and time.monotonic() < deadline:
            try:
                os.read(reader, 1 << 16)
            except BlockingIOError:
                time.sleep(0.01)
        proxy.check_end(proxy.wait(5))


if __name__ == "__main__":
    unittest.main()
