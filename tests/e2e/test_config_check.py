"""
What is said about configurations that are wrong, and what the options of the command line do.
"""

import concurrent.futures
import os
import re
import signal
import subprocess
import unittest

from harness import (
    IS_SALLYPORT, LIMITS, SALLYPORT, Case, connect, curl, free_port, listening_ports, ours_alone,
    sanitizer_environment, wait_until,
)

# A configuration that is right; a mistake is put in place of one of the marks.
BASE = """global
    maxconn 100
    #global#
defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
    #defaults#
frontend web
    bind 127.0.0.1:%(port)d
    #frontend#
    default_backend app
backend app
    #backend#
    server s1 127.0.0.1:%(port)d
#end#
"""

# (where, the wrong lines, what the message must hold: the word at fault, what was expected, a near keyword)
MISTAKES = {
    "unknown keyword in global": ("global", "maxcon 100", ["'maxcon'", "'maxconn'"]),
    "unknown keyword in defaults": ("defaults", "reties 3", ["'reties'", "'retries'"]),
    "unknown keyword in frontend": ("frontend", "defualt_backend x", ["'defualt_backend'", "'default_backend'"]),
    "unknown keyword in backend": ("backend", "balanse roundrobin", ["'balanse'", "'balance'"]),
    "unknown section": ("end", "frontnd two", ["'frontnd'", "'frontend'"]),
    "unknown option": ("defaults", "option httplogg", ["option httplogg", "option httplog"]),
    "unknown timeout": ("defaults", "timeout conect 5s", ["timeout conect", "timeout connect"]),
    "misplaced server": ("frontend", "server s9 127.0.0.1:80", ["'server'", "frontend", "backend"]),
    "misplaced bind": ("backend", "bind 127.0.0.1:80", ["'bind'", "backend", "frontend"]),
    "misplaced global keyword": ("frontend", "chroot /tmp", ["'chroot'", "global"]),
    "misplaced frontend keyword": ("global", "monitor-uri /x", ["'monitor-uri'", "frontend"]),
    "bad time": ("defaults", "timeout queue 5x", ["'5x'", "time"]),
    "time out of range": ("defaults", "timeout queue 999999d", ["'999999d'"]),
    "bad size": ("global", "tune.bufsize 16q", ["'16q'", "size"]),
    "bad number": ("defaults", "retries many", ["'many'", "number"]),
    "number out of range": ("global", "nbthread 0", ["'0'", "1 to"]),
    "bad mode": ("defaults", "mode htp", ["'htp'", "'http'", "'tcp'"]),
    "bad balance": ("backend", "balance roundrobbin", ["'roundrobbin'", "'roundrobin'"]),
    "missing argument": ("defaults", "timeout queue", ["timeout queue", "<time>"]),
    "too many arguments": ("global", "maxconn 100 200", ["'200'", "maxconn"]),
    "unknown user": ("global", "user no-such-user-here", ["'no-such-user-here'", "user"]),
    "unknown group": ("global", "group no-such-group-here", ["'no-such-group-here'", "group"]),
    "unknown facility": ("global", "log 127.0.0.1:514 locl0", ["'locl0'", "'local0'"]),
    "bad port": ("frontend", "bind 127.0.0.1:99999", ["127.0.0.1:99999", "65535"]),
    "address without port": ("frontend", "bind 127.0.0.1", ["127.0.0.1", "port"]),
    "unresolvable server": ("backend", "server s9 no-such-host.invalid:80", ["no-such-host.invalid"]),
    "unknown bind option": ("frontend", "bind 127.0.0.1:1 sll", ["'sll'", "'ssl'"]),
    "unknown server option": ("backend", "server s9 127.0.0.1:1 chek", ["'chek'", "'check'"]),
    "bad server option": ("backend", "server s9 127.0.0.1:1 weight 300", ["'300'", "256"]),
    "bad check interval": ("backend", "server s9 127.0.0.1:1 check inter 5q", ["'5q'", "inter"]),
    "duplicate server": ("backend", "server s8 127.0.0.1:1\n    server s8 127.0.0.1:1", ["s8"]),
    "duplicate backend": ("end", "backend app", ["'app'"]),
    "duplicate frontend": ("end", "frontend web\n    bind 127.0.0.1:1", ["'web'"]),
    "missing certificate": ("frontend", "bind 127.0.0.1:1 ssl crt /no/such.pem", ["/no/such.pem", "No such file"]),
    "empty certificate": ("frontend", "bind 127.0.0.1:1 ssl crt /dev/null", ["/dev/null"]),
    "ssl without certificate": ("frontend", "bind 127.0.0.1:1 ssl", ["certificate"]),
    "missing CA": ("backend", "server s9 127.0.0.1:1 ssl verify required ca-file /no/such.ca", ["/no/such.ca"]),
    "missing crt-list": ("frontend", "bind 127.0.0.1:1 ssl crt-list /no/such.list", ["/no/such.list"]),
    "unknown cipher": ("frontend", "bind 127.0.0.1:1 ssl crt @cert@ ciphers NO-SUCH-CIPHER", ["NO-SUCH-CIPHER"]),
    "unknown curve": ("frontend", "bind 127.0.0.1:1 ssl crt @cert@ curves nosuchcurve", ["nosuchcurve"]),
    "unknown TLS version": ("frontend", "bind 127.0.0.1:1 ssl crt @cert@ ssl-min-ver TLSv9", ["TLSv9", "TLSv1.2"]),
    "bad verify": ("frontend", "bind 127.0.0.1:1 ssl crt @cert@ verify maybe", ["'maybe'", "required"]),
    "unknown action": ("frontend", "http-request set-heder X y", ["'set-heder'", "'set-header'"]),
    "unknown response action": ("frontend", "http-response dell-header X", ["'dell-header'", "'del-header'"]),
    "missing header value": ("frontend", "http-request set-header X", ["set-header"]),
    "bad status": ("frontend", "http-request deny deny_status 9999", ["'9999'"]),
    "unknown fetch": ("frontend", "acl a pathh /x", ["'pathh'", "'path'"]),
    "unknown fetch in format": ("frontend", "http-request set-header X %[metod]", ["'metod'", "'method'"]),
    "unknown converter": ("frontend", "http-request set-header X %[path,loweer]", ["'loweer'", "'lower'"]),
    "missing converter argument": ("frontend", "http-request set-header X %[path,field]", ["field"]),
    "unclosed format": ("frontend", 'http-request set-header X "%[path"', ["%[path"]),
    "unknown alias": ("frontend", "log 127.0.0.1:514 local0\n    log-format %nosuch", ["nosuch"]),
    "unknown ACL": ("frontend", "http-request deny if nosuchacl", ["'nosuchacl'"]),
    "unknown matching method": ("frontend", "acl a path -m foo /x", ["'foo'"]),
    "bad regular expression": ("frontend", "acl a path_reg ^[", ["^["]),
    "bad address pattern": ("frontend", "acl a src 300.0.0.1", ["300.0.0.1"]),
    "bad integer pattern": ("frontend", "acl a dst_port eighty", ["eighty"]),
    "missing pattern file": ("frontend", "acl a path -f /no/such.lst", ["/no/such.lst"]),
    "missing map": ("frontend", "http-request set-header X %[path,map(/no/such.map)]", ["/no/such.map"]),
    "unclosed braces": ("frontend", "http-request deny if { path /x", ["}"]),
    "unknown backend": ("frontend", "use_backend nowhere if TRUE", ["'nowhere'"]),
    "unknown default_backend": ("end", "frontend two\n    bind 127.0.0.1:1\n    default_backend nowhere", ["'nowhere'"]),
    "unknown server in use-server": ("backend", "use-server nobody if TRUE", ["'nobody'"]),
    "missing errorfile": ("frontend", "errorfile 503 /no/such.http", ["/no/such.http"]),
    "errorfile for no error": ("frontend", "errorfile 299 /dev/null", ["299"]),
    "unknown http-errors section": ("frontend", "errorfiles nothing", ["'nothing'"]),
    "unknown defaults section": ("end", "frontend two from nothing\n    bind 127.0.0.1:1", ["'nothing'"]),
    "unclosed quote": ("global", 'description "never ends', ["quote"]),
    "unclosed .if": ("end", ".if streq(a,a)", [".if", ".endif"]),
    "unknown predicate": ("global", ".if is_it_so(a)\n    .endif", ["is_it_so"]),
    ".endif alone": ("global", ".endif", [".endif"]),
    "cookie without a name": ("backend", "cookie", ["cookie", "<name>"]),
    "bad http-check": ("backend", "option httpchk\n    http-check expect stats 200", ["'stats'", "status"]),
    "bad compression": ("frontend", "compression algo zstd", ["'zstd'", "gzip"]),
    "bad redirect": ("frontend", "redirect location /x code 299", ["299"]),
    "bad capture": ("frontend", "capture request header Host", ["capture request header"]),
}

# Known to HAProxy, and not here (yet).
REFUSED = {
    "lua-load": ("global", "lua-load /x.lua"),
    "stick-table": ("backend", "stick-table type ip size 1m"),
    "peers": ("end", "peers mine"),
    "resolvers": ("end", "resolvers dns"),
    "spoe": ("frontend", "filter spoe engine x config /x"),
}


def check(*arguments, env=None, **options):
    """(exit status, everything printed)"""
    done = subprocess.run(
        [SALLYPORT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
        check=False, timeout=30, env=dict(os.environ, **sanitizer_environment(), **(env or {})), **options
    )
    return done.returncode, done.stdout


def with_mistake(where, lines):
    """The base with lines in place of a mark, and the numbers of the first and the last of those lines."""
    port = 8080  # nothing is opened by -c
    text = BASE % {"port": port}
    before = text[:text.index("#%s#" % where)]
    first = before.count("\n") + 1
    text = text.replace("#%s#" % where, lines)
    return re.sub(r"#\w+#", "", text), (first, first + lines.count("\n"))


class Messages(Case):
    def setUp(self):
        super().setUp()
        self.certificate = None

    def make_certificate(self):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=a", "-keyout", self.path("key"), "-out", self.path("crt")],
            check=True, capture_output=True)
        with open(self.path("crt"), encoding="ascii") as crt, open(self.path("key"), encoding="ascii") as key:
            self.write("a.pem", crt.read() + key.read())
        return self.path("a.pem")

    def test_the_base_is_valid(self):
        text, _ = with_mistake("end", "")
        path = self.write("ok.cfg", text)
        status, output = check("-c", "-f", path)
        self.assertEqual(status, 0, output)
        self.assertNotIn("error", output)
        self.assertIn("Configuration file is valid", output if IS_SALLYPORT else "Configuration file is valid")

    @ours_alone
    def test_each_mistake(self):
        """One error: file, line, the word, what was expected, the nearest keyword. Exit status 1."""
        certificate = self.make_certificate()

        def run(item):
            number, (where, lines, _) = item
            text, numbers = with_mistake(where, lines.replace("@cert@", certificate))
            path = self.write("bad%d.cfg" % number, text)
            return path, numbers, check("-c", "-f", path)

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(run, enumerate(MISTAKES.values())))
        for (name, (_, _, parts)), (path, numbers, (status, output)) in zip(MISTAKES.items(), results):
            with self.subTest(name):
                self.assertEqual(status, 1, output)
                errors = [line for line in output.splitlines() if ": error: " in line]
                self.assertEqual(len(errors), 1, output)
                found = re.match(re.escape(path) + r":(\d+): error: (.*)", errors[0])
                self.assertTrue(found, output)
                self.assertIn(int(found.group(1)), range(numbers[0], numbers[1] + 2), output)
                for part in parts:
                    self.assertIn(part, found.group(2))
                self.assertRegex(output, "1 error")

    @ours_alone
    def test_known_but_not_supported(self):
        for word, (where, lines) in REFUSED.items():
            with self.subTest(word):
                text, (number, _) = with_mistake(where, lines)
                path = self.write("refused.cfg", text)
                status, output = check("-c", "-f", path)
                self.assertEqual(status, 1, output)
                errors = [line for line in output.splitlines() if ": error: " in line]
                self.assertEqual(len(errors), 1, output)
                self.assertIn("%s:%d: error: " % (path, number), errors[0])
                self.assertIn("'%s'" % word, errors[0])
                self.assertRegex(errors[0], "HAProxy.* does not support")

    @ours_alone
    def test_all_errors_at_once_and_nothing_starts(self):
        port = free_port()
        path = self.write("many.cfg", """global
    maxcon 10
defaults
    mode htp
    timeout client 5x
frontend web
    bind 127.0.0.1:%d
    http-request set-heder X y
    acl a pathh /x
    default_backend nowhere
backend app
    server s1 127.0.0.1:80 chek
    balance roundrobbin
""" % port)
        for arguments in (("-c", "-f", path), ("-f", path)):
            status, output = check(*arguments)
            self.assertEqual(status, 1, output)
            numbers = sorted({int(n) for n in re.findall(r"many\.cfg:(\d+): error: ", output)})
            self.assertEqual(numbers, [2, 4, 5, 8, 9, 10, 12, 13], output)
        self.assertNotIn(port, listening_ports())

    @ours_alone
    def test_errors_of_several_files(self):
        one = self.write("one.cfg", "global\n    maxcon 10\n")
        two = self.write("two.cfg", "frontend web\n    bnd 127.0.0.1:1\n")
        status, output = check("-c", "-f", one, "-f", two)
        self.assertEqual(status, 1)
        self.assertIn(one + ":2: error: ", output)
        self.assertIn(two + ":2: error: ", output)

    def test_missing_file(self):
        status, output = check("-c", "-f", self.path("none.cfg"))
        self.assertEqual(status, 1)
        self.assertIn("none.cfg", output)
        if IS_SALLYPORT:
            self.assertIn("No such file", output)

    def test_hostile_files(self):
        """Bytes that are no text are errors, never accidents."""
        for content in (b"\0", b"\xff" * 1000, b"global\n" + b"a" * 100000 + b"\n", b"frontend\n" * 1000,
                        b".if " * 2000, b'"', b"global\n log " + b'"' * 777, b"defaults\n mode \0http\n"):
            with self.subTest(content[:20]):
                with open(self.path("hostile.cfg"), "wb") as file:
                    file.write(content)
                status, output = check("-c", "-f", self.path("hostile.cfg"))
                self.assertEqual(status, 1, output)
        with open(self.path("empty.cfg"), "wb"):
            pass
        status, output = check("-c", "-f", self.path("empty.cfg"))
        self.assertIn(status, (0, 1) if IS_SALLYPORT else (0, 1, 2), output)


class Conditions(Case):
    def test_cc(self):
        """-cc: 0 when true, something else when false or wrong."""
        true = ["1", "streq(a,a)", "strneq(a,b)", "!0", "1 && 1", "0 || 1", "(1)", "-5", "version_atleast(2.4.0)",
                "feature(OPENSSL)", "openssl_version_atleast(1.1.1)", "!defined(SP_TEST_NEVER_SET)",
                "defined(SP_TEST_SET)", 'streq("$SP_TEST_SET",yes)', 'streq("${SP_TEST_NEVER_SET-no}",no)',
                "0 || 1 && 1", "!(0 || 0)", "version_before(1000)"]
        false = ["0", "", "streq(a,b)", "strneq(a,a)", "1 && 0", "version_atleast(1000)", "feature(NOTHING)",
                 "defined(SP_TEST_NEVER_SET)", "openssl_version_before(1.0.0)", "!1", "0 && 1 || 0"]
        wrong = ["nothing(1)", "streq(a", "streq(a,b,c", "1 &&", "(1", "1 1", 'streq("a,a)', "200x", "!"]
        if IS_SALLYPORT:
            true += ["enabled(EPOLL)", "ssllib_name_startswith(OpenSSL)"]
            false += ["enabled(NOTHING)", "ssllib_name_startswith(Wolf)"]
        table = [(expression, expressions is true, expressions is wrong)
                 for expressions in (true, false, wrong) for expression in expressions]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda row: check("-cc", row[0], env={"SP_TEST_SET": "yes"}), table))
        for (expression, expected, is_wrong), (status, output) in zip(table, results):
            with self.subTest(expression):
                self.assertEqual(status == 0, expected, output)
                if IS_SALLYPORT:
                    self.assertIn(status, (0, 1))
                if is_wrong:
                    self.assertNotEqual(output.strip(), "")


class CommandLine(Case):
    simple = """
defaults
    mode http
%s
frontend web
    bind 127.0.0.1:@web@
    http-request return status 200 content-type text/plain string "%s"
"""

    def valid(self):
        text, _ = with_mistake("end", "")
        return self.write("ok.cfg", text)

    def test_versions(self):
        for option in ("-v", "-vv"):
            status, output = check(option)
            self.assertEqual(status, 0)
            self.assertRegex(output, r"[Vv]ersion \d+\.\d+")
        self.assertGreater(len(check("-vv")[1]), len(check("-v")[1]))
        self.assertRegex(check("-vv")[1], "OpenSSL 3")

    @ours_alone
    def test_usage(self):
        status, output = check()
        self.assertEqual(status, 1)
        self.assertIn("Usage", output)
        status, output = check("--help")
        self.assertEqual(status, 0)
        for option in ("-f", "-c", "-v", "-D", "-p", "-sf", "-L", "-m", "-n", "-cc"):
            self.assertIn(option, output)

    @ours_alone
    def test_bad_options(self):
        for arguments in (["-z"], ["--nothing"], ["-f"], ["-n", "many", "-f", "x"], ["-m", "-1", "-f", "x"],
                          ["word"], ["-sf", "abc", "-f", "x"]):
            with self.subTest(arguments):
                status, output = check(*arguments)
                self.assertEqual(status, 1, output)
                self.assertNotEqual(output, "")

    def test_quiet_and_verbose(self):
        path = self.valid()
        status, output = check("-c", "-q", "-f", path)
        self.assertEqual((status, output), (0, ""))
        status, output = check("-c", "-V", "-f", path)
        self.assertEqual(status, 0)

    def test_unknown_debug_flags_are_accepted(self):
        for flag in ("-dX", "-dM", "-dr", "-dV", "-d", "-db"):
            if not IS_SALLYPORT and flag == "-dX":
                continue
            with self.subTest(flag):
                status, output = check(flag, "-c", "-f", self.valid())
                self.assertEqual(status, 0, output)

    def test_zero_warning(self):
        path = self.write("warns.cfg", "defaults\n    mode http\nfrontend web\n    bind 127.0.0.1:1\n")
        self.assertEqual(check("-c", "-f", path)[0], 0)
        status, output = check("-dW", "-c", "-f", path)
        self.assertEqual(status, 1)
        self.assertRegex(output.lower(), "warning")

    def test_several_files_and_a_folder(self):
        """The files are one configuration; of a folder, the *.cfg in the order of their names."""
        port = free_port()
        os.mkdir(self.path("conf"))
        self.write("conf/10-defaults.cfg", "defaults\n    mode http\n" + LIMITS)
        self.write("conf/20-web.cfg", "frontend web\n    bind 127.0.0.1:%d\n    default_backend app\n" % port)
        self.write("conf/30-app.cfg", "backend app\n    http-request return status 200 hdr X-From app\n")
        self.write("conf/README.txt", "this is not read\n")
        self.write("conf/.40-hidden.cfg", "nor is this\n")
        files = [os.path.join(self.path("conf"), name) for name in ("10-defaults.cfg", "20-web.cfg", "30-app.cfg")]
        for arguments in (["-f", self.path("conf")], sum((["-f", file] for file in files), []),
                          ["-f", files[0], "--", files[1], files[2]]):
            with self.subTest(arguments):
                status, output = check("-c", *arguments)
                self.assertEqual(status, 0, output)
        # The other way round there are no defaults yet.
        status, output = check("-dW", "-c", "-f", files[1], "-f", files[2], "-f", files[0])
        self.assertEqual(status, 1, output)

    def test_change_folder(self):
        self.write("relative.cfg", "defaults\n    mode http\n%s\nfrontend f\n    bind 127.0.0.1:1\n"
                   "    errorfile 503 page.http\n" % LIMITS)
        self.write("page.http", "HTTP/1.1 503 Away\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual(check("-c", "-f", self.path("relative.cfg"), cwd="/")[0], 1)
        status, output = check("-C", self.folder, "-c", "-f", "relative.cfg", cwd="/")
        self.assertEqual(status, 0, output)

    def test_local_peer_and_environment(self):
        proxy = self.proxy("""
global
    setenv SP_TEST_SETENV fromglobal
    presetenv SP_TEST_GIVEN other
defaults
    mode http
    %s
frontend web
    bind 127.0.0.1:@web@
    http-request return status 200 content-type text/plain string "${HAPROXY_LOCALPEER} ${SP_TEST_GIVEN} ${SP_TEST_SETENV} ${SP_TEST_NEVER_SET-default}"
""" % LIMITS, arguments=["-L", "peer-name"], env={"SP_TEST_GIVEN": "given"})
        self.assertEqual(curl(proxy.url("web")), "peer-name given fromglobal default")

    def test_maxconn_and_memory(self):
        """-n limits connections: the third waits until another ends."""
        proxy = self.proxy(self.simple % (LIMITS, "hello"), arguments=["-n", "2"])
        held = []
        for _ in range(2):
            sock = proxy.connect("web")
            sock.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertIn(b"200", sock.recv(4096))
            held.append(sock)
        third = proxy.connect("web", timeout=0.5)
        third.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        with self.assertRaises(TimeoutError):
            third.recv(4096)
        held[0].close()
        third.settimeout(5)
        self.assertIn(b"200", third.recv(4096))
        third.close()
        held[1].close()

    @ours_alone
    def test_memory_limit(self):
        status, output = check("-m", "1000000", "-c", "-f", self.valid())
        self.assertEqual(status, 0, output)

    def test_daemon_and_pidfile(self):
        """-D: the command ends when connections are accepted; -p holds the number of the process."""
        port, pidfile = free_port(), self.path("pid")
        config = self.write("d.cfg", (self.simple % (LIMITS, "hello")).replace("@web@", str(port)))
        status, output = check("-D", "-p", pidfile, "-f", config)
        self.assertEqual(status, 0, output)
        self.assertIn(port, listening_ports())
        self.assertEqual(curl("http://127.0.0.1:%d/" % port), "hello")
        with open(pidfile, encoding="ascii") as file:
            pid = int(file.read())
        with open("/proc/%d/stat" % pid, encoding="ascii") as file:
            session = int(file.read().rsplit(")", 1)[1].split()[3])
        self.assertNotEqual(session, os.getsid(0))
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not os.path.exists("/proc/%d" % pid) or _is_zombie(pid), "the end of the process")
        self.assertNotIn(port, listening_ports())

    def test_daemon_that_cannot_start_says_so(self):
        with self.subTest("a port that is taken"):
            taken = self.server(lambda connection: None)
            config = self.write("t.cfg", (self.simple % (LIMITS, "x")).replace("@web@", str(taken.port)))
            status, output = check("-D", "-f", config)
            self.assertEqual(status, 1, output)
            self.assertIn(str(taken.port), output)

    @ours_alone
    def test_foreground_options_win(self):
        """-db and -d stay in the foreground even with `daemon` in the configuration."""
        for flag in ("-db", "-d"):
            proxy = self.proxy("global\n    daemon\n" + self.simple % (LIMITS, "hello"), arguments=[flag],
                               name="foreground" + flag)
            self.assertEqual(curl(proxy.url("web")), "hello")
            proxy.stop()

    def test_taken_port(self):
        taken = self.server(lambda connection: None)
        config = self.write("t.cfg", (self.simple % (LIMITS, "x")).replace("@web@", str(taken.port)))
        status, output = check("-f", config)
        self.assertEqual(status, 1, output)
        self.assertIn(str(taken.port), output)
        connect(taken.port).close()


def _is_zombie(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] == "Z"
    except OSError:
        return True


if __name__ == "__main__":
    unittest.main()
