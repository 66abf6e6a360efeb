"""What the benchmarks share: ports, certificates, and the description of the machine."""
import os
import socket
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SALLYPORT = os.environ.get("SALLYPORT", os.path.join(ROOT, "build", "sallyport"))


TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """User and system time of a process and of its children that still run."""
    total = 0
    for task in [str(pid), *children(pid)]:
        try:
            with open(f"/proc/{task}/stat") as f:
                fields = f.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        total += int(fields[11]) + int(fields[12])
    return total / TICK


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return f.read().split()
    except OSError:
        return []


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for_port(port, process):
    for _ in range(200):
        if process.poll() is not None:
            sys.exit(f"bench: {process.args[0]} ended with code {process.returncode} at start")
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.02)
    sys.exit(f"bench: port {port} did not open")


def make_certificate(folder, kind):
    pem = os.path.join(folder, kind + ".pem")
    key = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"] if kind == "p256" else [kind.replace("rsa", "rsa:")]
    subprocess.run(["openssl", "req", "-x509", "-nodes", "-newkey", *key, "-days", "30", "-subj", "/CN=localhost",
                    "-keyout", pem + ".k", "-out", pem + ".c"], check=True, capture_output=True)
    with open(pem, "wb") as out:
        for part in (pem + ".c", pem + ".k"):
            with open(part, "rb") as f:
                out.write(f.read())
    return pem


def machine():
    cpu = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    kernel = os.uname().release
    versions = [subprocess.run(c, capture_output=True, text=True).stdout.splitlines()[0]
                for c in ([SALLYPORT, "-v"], ["haproxy", "-v"], ["openssl", "version"])]
    return f"{cpu}, {os.cpu_count()} cores, Linux {kernel}; " + "; ".join(versions)
