"""Configurations as people write and paste them."""
import os

from harness import case, KAFKA, PG

HOST, PORT = KAFKA.split(":")


def fresh(site):
    s = site()
    s.sql("CREATE TABLE out (id text)")
    s.send({}, id="a")
    s.h = s.handler("INSERT INTO out VALUES ({header:event-id})")
    return s


def try_url(site, make, works, says=(), env=None, files=None):
    s = fresh(site)
    for name, text in (files or {}).items():
        path = os.path.join(s.dir, name)
        with open(path, "w") as file:
            file.write(text.format(db=s.db))
        os.chmod(path, 0o600)
    url = make(s)
    s.write(s.h, url=url.replace("\\", "\\\\").replace('"', '\\"'))
    e = {k: v.format(dir=s.dir, db=s.db) for k, v in (env or {}).items()}
    check = s.cmd("check", env=e, timeout=30)
    if works:
        s.same(check.code, 0, f"check of {url!r}: {check.tail(4, 300)}")
        done = s.drain(env=e, timeout=30)
        s.same(done.code, 0, f"run with {url!r}")
        s.same(s.rows("SELECT count(*) FROM out"), [(1,)], "applied")
    else:
        done = s.drain(env=e, timeout=10)
        s.expect(check.code in (1, 2), f"check accepts {url!r}")
        s.expect(done.code in (1, 2), f"run with {url!r}: code {done.code} after 10 s (does not end): {done.tail(2, 300)}")
        for t in says:
            s.expect(t in check.out, f"check says nothing of {t!r}: {check.tail(3, 400)}")
        s.note(f"{url!r}: check {check.code}, run {done.code}: " + " | ".join(x[:260] for x in check.out.splitlines() if "ok " not in x and " info " not in x)[:500])
    return s


@case("config", "people paste the JDBC or SQLAlchemy URL (kafka-connect configs: jdbc:postgresql://...)", "jdbc:postgresql://host/db, postgresql+psycopg2://, postgres+asyncpg://", "an error of the configuration that says what form is wanted; not an endless wait")
def pasted_driver_urls(site):
    for form in ("jdbc:postgresql://127.0.0.1:{port}/{db}", "postgresql+psycopg2://postgres@127.0.0.1:{port}/{db}", "jdbc:postgresql://127.0.0.1:{port}/{db}?user=postgres"):
        try_url(site, lambda s: form.format(port=PG.rsplit(":", 1)[1].split("/")[0], db=s.db), False)


@case("config", "libpq service files, multi-host URLs with a dead first host, target_session_attrs", "service=..., host=a,b port=1,N, PGHOST from the environment", "connect")
def service_and_multi_host(site):
    port = PG.rsplit(":", 1)[1].split("/")[0]
    try_url(site, lambda s: "service=mine", True, files={"svc": f"[mine]\nhost=127.0.0.1\nport={port}\ndbname={{db}}\nuser=postgres\n"}, env={"PGSERVICEFILE": "{dir}/svc"})
    try_url(site, lambda s: f"postgresql://postgres@127.0.0.1:1,127.0.0.1:{port}/{s.db}?target_session_attrs=read-write", True)
    try_url(site, lambda s: f"dbname={s.db}", True, env={"PGPORT": port})
    try_url(site, lambda s: f"postgresql:///{s.db}?host=127.0.0.1&port={port}&user=postgres", True)


@case("config", "bootstrap lists: blanks, trailing comma, PLAINTEXT:// prefixes, no port, localhost and IPv6", "forms of bootstrap_servers that people paste", "work, or an error of the configuration with its place", slow=True)
def bootstrap_forms(site):
    for form, works in ((f"{HOST}:{PORT}, {HOST}:{PORT}", True), (f" {HOST}:{PORT}", None), (f"{HOST}:{PORT},", None), (f"PLAINTEXT://{HOST}:{PORT}", None), (f"kafka://{HOST}:{PORT}", False), (f"http://{HOST}:{PORT}", False), (f"{HOST}:{PORT}/topic", False), (f"{HOST};{HOST}:{PORT}", False), (f"127.0.0.1:1,{HOST}:{PORT}", True)):
        s = fresh(site)
        s.write(s.h, bootstrap=form)
        check = s.cmd("check", timeout=40)
        done = s.drain(timeout=15)
        applied = s.rows("SELECT count(*) FROM out")[0][0]
        text = " | ".join(x[:230] for x in check.out.splitlines() if "ok " not in x and " info " not in x)[:400]
        s.note(f"{form!r}: check {check.code}, run {done.code}, applied {applied}: {text}")
        if works:
            s.same((check.code, done.code, applied), (0, 0, 1), f"{form!r}")
        elif works is None:
            s.expect((check.code, done.code, applied) == (0, 0, 1) or (check.code == 2 and done.code == 2), f"{form!r}: neither works nor is refused: check {check.code}, run {done.code}")
        else:
            s.expect(check.code != 0, f"check accepts {form!r}")
            s.expect(done.code == 2, f"run with {form!r}: code {done.code}, no error of the configuration: {done.tail(1, 300)}")
    s = fresh(site)
    s.write(s.h, bootstrap=HOST)
    s.expect(f"{HOST}:9092" in s.cmd("check", timeout=40).out, "a broker without a port has another one than 9092")


@case("config", "Notepad and PowerShell: CRLF, UTF-8 BOM, UTF-16 (Out-File)", "the configuration with Windows line ends, a BOM, as UTF-16", "CRLF and BOM are read; UTF-16 is refused with words that say so")
def windows_files(site):
    s = fresh(site)
    text = s.write(s.h)
    s.write(None, raw=text.replace("\n", "\r\n").encode())
    done = s.drain()
    s.same((done.code, s.rows("SELECT count(*) FROM out")), (0, [(1,)]), "CRLF")
    s.write(None, raw=b"\xef\xbb\xbf" + text.encode())
    done = s.cmd("check")
    s.same(done.code, 0, "BOM: " + done.tail(2))
    s.write(None, raw=text.encode("utf-16"))
    done = s.cmd("check")
    s.same(done.code, 2, "UTF-16 refused")
    s.note("UTF-16: " + done.tail(2, 200))


@case("config", "environment substitution: unset, empty, with quotes, newlines, ${ in values, defaults ${X:-y} of shells", "variables as in docker-compose", "unset and :- are errors that say so; values are taken as they are")
def environment_values(site):
    s = fresh(site)
    s.write(s.h.replace("INSERT INTO out VALUES", "INSERT INTO ${TABLE} VALUES"))
    done = s.drain(env={"TABLE": "out"})
    s.same((done.code, s.rows("SELECT count(*) FROM out")), (0, [(1,)]), "variable in SQL")
    done = s.cmd("check")
    s.same(done.code, 2, "unset")
    s.note("unset: " + done.tail(1, 200))
    s.write(s.h, bootstrap="${BROKERS:-127.0.0.1:9092}")
    done = s.cmd("check")
    s.same(done.code, 2, "default of a shell")
    s.note(":- : " + done.tail(1, 250))
    s.write(s.h, bootstrap="${BROKERS}")
    done = s.cmd("check", env={"BROKERS": ""})
    s.expect(done.code != 0, "empty variable")
    s.note("empty: " + " | ".join(done.out.splitlines()[:2])[:250])
    done = s.cmd("check", env={"BROKERS": KAFKA + "\n"}, timeout=30)
    s.note(f"with a newline at its end: check {done.code}: " + " | ".join(x[:200] for x in done.out.splitlines() if "ok " not in x)[:300])


@case("config", "a second [kafka] table, keys twice, wrong section names, YAML in place of TOML", "configuration mistakes", "errors with file:line")
def mistakes(site):
    s = fresh(site)
    text = s.write(s.h)
    for raw, word in ((text + '\n[kafka]\ngroup = "x"\n', ":"), (text.replace('group = ', 'group = "a"\ngroup = '), ":"), (text.replace("[postgres]", "[postgresql]"), "postgres"), (text.replace("topics =", "topic ="), "topics"), ("kafka:\n  group: a\n", ":1"), (text.replace('"""', "'''").replace("key =", "keys ="), "key"), ("", "kafka"), (text.replace("sql = [", "sql = [ 5, "), "sql")):
        s.write(None, raw=raw)
        done = s.cmd("check")
        s.expect(done.code == 2 and word in done.out, f"{raw[-80:]!r}: code {done.code}: {done.tail(2, 200)}")


@case("config", "two clusters into one database under one name; another group by a typing error", "kafka.cluster the same for two clusters; a group renamed", "first contact halts; the renamed group does not apply again without being told")
def renamed_group(site):
    s = fresh(site)
    s.write(s.h)
    s.drain()
    s.group += "-renamed"
    s.write(s.h)
    done = s.drain(timeout=20)
    s.same(done.code, 4, "halts at first contact")
    s.same(s.rows("SELECT count(*) FROM out"), [(1,)], "not applied again")
    s.note(" | ".join(x[31:330] for x in done.out.splitlines() if "error" in x)[:500])
