"""
What the end-to-end and fault tests share: the load balancer in a folder of its own on free ports,
servers behind it (nginx, the built-in origin, raw sockets), certificates, raw requests.

SALLYPORT names the program (default build/sallyport). It may be HAProxy itself: tests of behaviour
that is HAProxy's pass with both; `IS_SALLYPORT` tells them apart where they cannot.
"""

import contextlib
import glob
import os
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
SALLYPORT = os.path.abspath(os.environ.get("SALLYPORT", os.path.join(ROOT, "build", "sallyport")))
SECONDS = 20  # the longest wait for anything that should take no time

LIMITS = """
    timeout connect 5s
    timeout client 10s
    timeout server 10s
"""


def _version():
    try:
        done = subprocess.run([SALLYPORT, "-v"], capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stdout + done.stderr


VERSION = _version()
IS_SALLYPORT = "Sallyport" in VERSION
ours_alone = unittest.skipUnless(IS_SALLYPORT, "about what only Sallyport does")


def is_sanitized():
    """Whether the program carries AddressSanitizer: slower, and with memory figures of its own."""
    with open(SALLYPORT, "rb") as file:
        return b"__asan_init" in file.read()


def require(*programs):
    """Skips the test when a program is not installed."""
    for program in programs:
        if not shutil.which(program):
            raise unittest.SkipTest(program + " is not installed")


# Waiting and ports ---------------------------------------------------------------------


def wait_until(condition, what, seconds=SECONDS):
    """The first true answer of `condition`, or a failure that says what never came."""
    deadline = time.monotonic() + seconds
    pause = 0.002
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError("waited %g s for %s" % (seconds, what))
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


_given = set()


def free_port():
    """A port below those that the system gives to outgoing connections, never the same twice."""
    while True:
        port = random.randrange(10000, 32000)
        if port in _given:
            continue
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port


def listening_ports():
    """TCP ports that something listens on, of any address."""
    ports = set()
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with contextlib.suppress(OSError):
            with open(path, encoding="ascii") as file:
                for line in file.readlines()[1:]:
                    fields = line.split()
                    if fields[3] == "0A":
                        ports.add(int(fields[1].rsplit(":", 1)[1], 16))
    return ports


def signal_is_handled(pid, number):
    """
    Whether the process has arranged what happens on the signal: catches it, or blocks it in every
    thread but the one that waits for it.
    """
    for path in glob.glob("/proc/%d/task/*/status" % pid):
        with contextlib.suppress(OSError):
            with open(path, encoding="ascii") as file:
                text = file.read()
            masks = re.findall(r"^Sig(?:Blk|Cgt):\s*([0-9a-f]+)", text, re.MULTILINE)
            if any(int(mask, 16) >> (number - 1) & 1 for mask in masks):
                return True
    return False


# Processes -----------------------------------------------------------------------------


def sanitizer_environment():
    """The options of run-tests, if it is not run-tests that runs us."""
    options = "detect_leaks=1:exitcode=99:strict_string_checks=1"
    return {
        "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", options),
        "UBSAN_OPTIONS": os.environ.get(
            "UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1:exitcode=99"
        ),
    }


# A remark, once a process: it has seen a jump out of a stack that it does not know, a paused handshake's.
STACK_SWITCH = re.compile(r"==\d+==WARNING: ASan is ignoring requested __asan_handle_no_return.*\n"
                          r"False positive error reports may follow\n"
                          r"For details see .*\n")


def sanitizer_reports(pid):
    """What a sanitizer wrote about a process, when it writes to files."""
    found = re.search(r"log_path=([^:]+)", os.environ.get("ASAN_OPTIONS", ""))
    texts = []
    for path in glob.glob(glob.escape(found.group(1)) + ".%d" % pid) if found else []:
        with open(path, encoding="utf-8", errors="replace") as file:
            texts.append(STACK_SWITCH.sub("", file.read()))
    return "".join(texts)


class Process:
    """A child whose output goes to a file."""

    def __init__(self, command, output_path, cwd=None, env=None, preexec_fn=None):
        self.command = command
        self.output_path = output_path
        with open(output_path, "ab") as output:
            self.child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, cwd=cwd,
                env=dict(os.environ, **(env or {})), preexec_fn=preexec_fn,
            )
        self.pid = self.child.pid

    def output(self):
        with open(self.output_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def is_running(self):
        return self.child.poll() is None

    def signal(self, number):
        os.kill(self.pid, number)

    def wait(self, seconds=SECONDS):
        try:
            return self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                "%s still ran after %g s:\n%s" % (self.command[0], seconds, self.output())
            ) from None

    def kill(self):
        if self.is_running():
            self.child.kill()
            self.child.wait()

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def rss_kib(self):
        with open("/proc/%d/status" % self.pid, encoding="ascii") as file:
            return int(re.search(r"VmRSS:\s+(\d+)", file.read()).group(1))


class Proxy(Process):
    """
    The load balancer. In its configuration @dir@ is its folder, @NAME@ a port: that of the
    keyword argument, or a free one, then in `ports`.
    """

    def __init__(self, folder, config, arguments=(), env=None, wait=True, preexec_fn=None, name="proxy",
                 **ports):
        self.ports = ports
        self.folder = folder
        self.config = re.sub(r"@(\w+)@", self._replace, config)
        self.config_path = os.path.join(folder, name + ".cfg")
        with open(self.config_path, "w", encoding="utf-8") as file:
            file.write(self.config)
        self.listens = {
            int(port)
            for line in re.findall(r"^\s*bind\s+(\S+)", self.config, re.MULTILINE)
            for port in re.findall(r":(\d+)$", line)
        }
        variables = dict(sanitizer_environment(), **(env or {}))
        super().__init__(
            [SALLYPORT, *arguments, "-f", self.config_path], os.path.join(folder, name + ".log"),
            env=variables, preexec_fn=preexec_fn,
        )
        self.stopped = False
        if wait:
            self.wait_ready()

    def _replace(self, match):
        word = match.group(1)
        if word == "dir":
            return self.folder
        if word not in self.ports:
            self.ports[word] = free_port()
        return str(self.ports[word])

    def wait_ready(self, seconds=30):
        def ready():
            if not self.is_running():
                raise AssertionError(
                    "exit status %s at the start:\n%s" % (self.child.returncode, self.output())
                )
            return self.listens <= listening_ports() and signal_is_handled(self.pid, signal.SIGUSR1)

        try:
            wait_until(ready, "the load balancer to start", seconds)
        except AssertionError as error:
            self.kill()
            raise AssertionError("%s\n%s" % (error, self.output())) from None

    def wait_output(self, pattern, seconds=SECONDS, count=1):
        """The matches of a pattern in the output once there are `count` of them."""
        def matches():
            found = list(re.finditer(pattern, self.output(), re.MULTILINE))
            return found if len(found) >= count else None

        try:
            return wait_until(matches, "%d times %r" % (count, pattern), seconds)
        except AssertionError as error:
            raise AssertionError("%s in the output:\n%s" % (error, self.output()[-4000:])) from None

    def check_end(self, status):
        """After the process has ended: how, and that no sanitizer had anything to say."""
        self.stopped = True
        text = self.output() + sanitizer_reports(self.pid)
        for mark in ("Sanitizer", "runtime error:"):
            if mark in text:
                raise AssertionError(text[-12000:])
        if IS_SALLYPORT and status != 0:
            raise AssertionError("exit status %s:\n%s" % (status, text[-4000:]))

    def stop(self, number=signal.SIGTERM, seconds=SECONDS):
        """Ends it and checks how it ended."""
        if self.stopped:
            return
        if not self.is_running():
            self.check_end(self.child.returncode)
            raise AssertionError("it had ended by itself:\n" + self.output()[-4000:])
        self.signal(number)
        self.check_end(self.wait(seconds))

    # Requests

    def url(self, name, path="/", scheme="http", host="127.0.0.1"):
        return "%s://%s:%d%s" % (scheme, host, self.ports[name], path)

    def connect(self, name, timeout=SECONDS):
        return connect(self.ports[name], timeout)

    def raw(self, name, data, timeout=SECONDS):
        """All that comes back for `data`, until the other side closes."""
        with self.connect(name, timeout) as sock:
            sock.sendall(data)
            return read_all(sock)


class Case(unittest.TestCase):
    """A test with a folder; what it starts is stopped and checked at its end."""

    maxDiff = 4000

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="sp-", dir="/tmp")
        os.chmod(self.folder, 0o755)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def proxy(self, config, **options):
        proxy = Proxy(self.folder, config, **options)
        self.addCleanup(proxy.stop)
        self.addCleanup(self._kill_if_failed, proxy)
        return proxy

    def _kill_if_failed(self, proxy):
        """A failed test is told by its own words, not by how the process ends afterwards."""
        outcome = getattr(self, "_outcome", None)
        if outcome is not None and not getattr(outcome, "success", True) and not proxy.stopped:
            if proxy.is_running():
                proxy.signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    proxy.child.wait(5)
            proxy.kill()
            proxy.stopped = True
            print("\n-- the output of the load balancer in %s:\n%s" % (
                self.id(), (proxy.output() + sanitizer_reports(proxy.pid))[-6000:]))

    def nginx(self, **options):
        server = Nginx(self.folder, **options)
        self.addCleanup(server.stop)
        return server

    def origin(self, *arguments):
        server = Origin(self.folder, *arguments)
        self.addCleanup(server.stop)
        return server

    def server(self, handler):
        server = RawServer(handler)
        self.addCleanup(server.close)
        return server

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, content):
        mode = "wb" if isinstance(content, bytes) else "w"
        with open(self.path(name), mode) as file:
            file.write(content)
        return self.path(name)


# Servers behind ------------------------------------------------------------------------


class Nginx(Process):
    """A real nginx: files from `root`, PUT stores them there, /status/N answers with that code."""

    count = 0

    def __init__(self, folder, extra="", port=None):
        require("nginx")
        Nginx.count += 1
        self.port = port or free_port()
        base = os.path.join(folder, "nginx-%d" % Nginx.count)
        self.root = os.path.join(base, "root")
        os.makedirs(self.root)
        os.makedirs(os.path.join(base, "temp"))
        for path in (base, self.root, os.path.join(base, "temp")):
            os.chmod(path, 0o777)
        config = os.path.join(base, "nginx.conf")
        with open(config, "w", encoding="ascii") as file:
            file.write("""
                daemon off;
                master_process off;
                worker_rlimit_nofile 8192;
                error_log %(base)s/error.log warn;
                pid %(base)s/pid;
                events { worker_connections 4096; }
                http {
                    access_log off;
                    client_body_temp_path %(base)s/temp;
                    proxy_temp_path %(base)s/temp;
                    fastcgi_temp_path %(base)s/temp;
                    uwsgi_temp_path %(base)s/temp;
                    scgi_temp_path %(base)s/temp;
                    client_max_body_size 0;
                    keepalive_requests 1000000;
                    default_type application/octet-stream;
                    server {
                        listen 127.0.0.1:%(port)d backlog=4096;
                        root %(root)s;
                        %(extra)s
                        location / {
                            dav_methods PUT DELETE;
                            if ($request_method = POST) { return 200 "posted\\n"; }
                        }
                        location = /hello { return 200 "hello\\n"; }
                        location /status/204 { return 204; }
                        location /status/301 { return 301 /hello; }
                        location /status/500 { return 500; }
                    }
                }
                """ % {"base": base, "port": self.port, "root": self.root, "extra": extra})
        super().__init__(["nginx", "-c", config, "-e", base + "/error.log"], base + "/output")
        wait_until(lambda: self.port in listening_ports() or not self.is_running(), "nginx")
        if not self.is_running():
            raise AssertionError("nginx did not start:\n" + self.output())

    def file(self, name, content):
        path = os.path.join(self.root, name)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, 0o644)

    def stored(self, name):
        with open(os.path.join(self.root, name), "rb") as file:
            return file.read()

    def stop(self):
        self.kill()


class Origin(Process):
    """`sallyport origin`, or nginx with one file when the program is not ours."""

    count = 0

    def __init__(self, folder, *arguments):
        Origin.count += 1
        self.port = free_port()
        program = SALLYPORT if IS_SALLYPORT else os.path.join(ROOT, "build", "sallyport")
        if not os.access(program, os.X_OK):
            raise unittest.SkipTest("needs the built-in origin, build/sallyport")
        super().__init__(
            [program, "origin", "--listen", "127.0.0.1:%d" % self.port, *arguments],
            os.path.join(folder, "origin-%d.log" % Origin.count), env=sanitizer_environment(),
        )
        wait_until(lambda: self.port in listening_ports() or not self.is_running(), "the origin")
        if not self.is_running():
            raise AssertionError("the origin did not start:\n" + self.output())

    def stop(self):
        if self.is_running():
            self.signal(signal.SIGTERM)
            status = self.wait()
            if status != 0 or sanitizer_reports(self.pid):
                raise AssertionError(
                    "the origin's exit status %s\n%s" % (status, self.output())
                )


class RawServer:
    """
    A server made of a function: handler(connection) runs in a thread for every connection, with what
    a Connection offers. It may leave the connection open, close it or reset it.
    """

    def __init__(self, handler, backlog=128):
        self.handler = handler
        self.socket = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.port = self.socket.getsockname()[1]
        self.connections = []
        self.requests = []
        self.closed = False
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.socket.accept()
            except OSError:
                return
            sock.settimeout(SECONDS)
            connection = Connection(sock, self)
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            self.handler(connection)
        except (OSError, EOFError):
            pass
        finally:
            connection.close()

    def close(self):
        self.closed = True
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        for connection in self.connections:
            connection.close()


class Connection:
    """One side of an HTTP connection."""

    def __init__(self, sock, server=None):
        self.sock = sock
        self.server = server
        self.buffer = b""
        self.number = len(server.connections) + 1 if server else 0

    def _more(self):
        data = self.sock.recv(1 << 16)
        if not data:
            raise EOFError(self.buffer)
        self.buffer += data

    def until(self, mark):
        while mark not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(mark, 1)
        return head + mark

    def exactly(self, size):
        parts = []
        while size > 0:
            if not self.buffer:
                self._more()
            part, self.buffer = self.buffer[:size], self.buffer[size:]
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def head(self):
        """Bytes of a message's head, with the empty line."""
        while True:
            head = self.until(b"\r\n\r\n")
            if head.strip():
                return head

    def body(self, head):
        """The decoded content that belongs to a head."""
        fields = parse_fields(head)
        if "chunked" in fields.get("transfer-encoding", ""):
            parts = []
            while True:
                size = int(self.until(b"\r\n").split(b";")[0], 16)
                if size == 0:
                    break
                parts.append(self.exactly(size))
                self.exactly(2)
            trailers = b""
            while not trailers.endswith(b"\r\n\r\n") and trailers != b"\r\n":
                trailers += self.until(b"\r\n")
            self.trailers = trailers
            return b"".join(parts)
        return self.exactly(int(fields.get("content-length", "0")))

    def request(self):
        """(head, body) of the next request, noted in the server's `requests`."""
        head = self.head()
        body = self.body(head)
        if self.server:
            self.server.requests.append((head, body))
        return head, body

    def response(self, method="GET"):
        """(status, fields, body); a body without a length ends with the connection."""
        head = self.head()
        status = int(head.split(b" ", 2)[1])
        fields = parse_fields(head)
        if method == "HEAD" or status < 200 or status in (204, 304):
            return status, fields, b""
        if "transfer-encoding" in fields or "content-length" in fields:
            return status, fields, self.body(head)
        data = self.buffer
        self.buffer = b""
        return status, fields, data + read_all(self.sock)

    def send(self, data):
        self.sock.sendall(data)

    def answer(self, body=b"", status="200 OK", head=b""):
        self.send(b"HTTP/1.1 %s\r\nContent-Length: %d\r\n%s\r\n%s"
                  % (status.encode(), len(body), head, body))

    def reset(self):
        """Ends with RST."""
        with contextlib.suppress(OSError):
            self.sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.sock.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def serve_hello(connection):
    """Answers every request with "hello"."""
    while True:
        connection.request()
        connection.answer(b"hello\n")


# Clients -------------------------------------------------------------------------------


def connect(port, timeout=SECONDS):
    sock = socket.create_connection(("127.0.0.1", port), timeout=timeout)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def connect_tls(port, name=None, context=None, timeout=SECONDS):
    context = context or unverified_context()
    return context.wrap_socket(connect(port, timeout), server_hostname=name)


def unverified_context():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def read_all(sock):
    """Until the end of the connection; a reset is an end, too."""
    parts = []
    while True:
        try:
            part = sock.recv(1 << 16)
        except ConnectionResetError:
            break
        except ssl.SSLEOFError:
            break
        if not part:
            break
        parts.append(part)
    return b"".join(parts)


def parse_fields(head):
    """Fields of a head by their names in lower case; several of one name are joined by commas."""
    fields = {}
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, colon, value = line.partition(":")
        if colon:
            name, value = name.lower(), value.strip()
            fields[name] = fields[name] + ", " + value if name in fields else value
    return fields


def status_of(data):
    """Status of the first response in `data`, 0 when there is none."""
    found = re.match(rb"HTTP/1\.[01] (\d{3}) ", data)
    return int(found.group(1)) if found else 0


def statuses_of(data):
    return [int(code) for code in re.findall(rb"HTTP/1\.[01] (\d{3}) ", data)]


def curl(*arguments, check=True, text=True):
    """Output of curl; with check, a failure is an error."""
    require("curl")
    done = subprocess.run(
        ["curl", "-sS", "--noproxy", "*", "--max-time", "60", *arguments],
        capture_output=True, text=text, check=False,
    )
    if check and done.returncode:
        words = " ".join(word[:200] for word in arguments)
        raise AssertionError("curl %s: %s %s" % (words, done.returncode, done.stderr))
    return done.stdout if check else done


def run(*command, text=True, seconds=120, **options):
    """A command's standard output; failing is an error that shows all it wrote."""
    done = subprocess.run(
        command, capture_output=True, text=text, check=False, timeout=seconds, **options
    )
    if done.returncode:
        raise AssertionError("%s: exit status %d\n%s%s" % (
            " ".join(command), done.returncode, done.stdout, done.stderr))
    return done.stdout


# Certificates --------------------------------------------------------------------------


class Authority:
    """A certificate authority in a folder. `ca` is the path of its certificate."""

    def __init__(self, folder, name="Test CA"):
        require("openssl")
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.ca = os.path.join(folder, "ca.crt")
        self.key = os.path.join(folder, "ca.key")
        self.serial = 1000
        run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
            "-nodes", "-days", "30", "-subj", "/CN=" + name, "-keyout", self.key, "-out", self.ca)

    def issue(self, file, common_name, names=(), key="ec", days=30):
        """
        A PEM file of certificate and key; returns its path. `names` become DNS and IP alternative names.
        A `key` that is neither "ec" nor "rsa" is the path of one to use.
        """
        path = os.path.join(self.folder, file)
        base = path + ".tmp"
        if key == "ec":
            new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        elif key == "rsa":
            new = ["-newkey", "rsa:2048"]
        else:
            shutil.copy(key, base + ".key")
            new = ["-new", "-key", base + ".key"]
        if key in ("ec", "rsa"):
            new += ["-keyout", base + ".key"]
        run("openssl", "req", *new, "-nodes", "-subj", "/O=Test/CN=" + common_name, "-out",
            base + ".csr")
        extensions = base + ".ext"
        with open(extensions, "w", encoding="ascii") as out:
            out.write("basicConstraints=CA:FALSE\n")
            if names:
                out.write("subjectAltName=" + ",".join(
                    ("IP:" if re.fullmatch(r"[0-9.]+", name) else "DNS:") + name for name in names
                ) + "\n")
        self.serial += 1
        run("openssl", "x509", "-req", "-in", base + ".csr", "-CA", self.ca, "-CAkey", self.key,
            "-set_serial", str(self.serial), "-days", str(days), "-extfile", extensions, "-out",
            base + ".crt")
        with open(path, "w", encoding="ascii") as out:
            for part in (".crt", ".key"):
                with open(base + part, encoding="ascii") as text:
                    out.write(text.read())
        for part in (".crt", ".key", ".csr", ".ext"):
            os.unlink(base + part)
        return path
