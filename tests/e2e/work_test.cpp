// SPDX-License-Identifier: MIT
// Ordinary work, which a sandbox that is any use lets be: under each backend, for each user, and
// what only reads in read-only, too. A tool that is not installed is said so; those that
// `./dev setup test` installs must be there.
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "tests/e2e/world.hpp"

using namespace stockade::test;

namespace {

const char* kPath = "/usr/local/bin:/usr/bin:/bin";

bool installed(const std::string& tool) {
  for (const char* directory : {"/usr/local/bin/", "/usr/bin/", "/bin/"})
    if (access((directory + tool).c_str(), X_OK) == 0) return true;
  std::printf("note: %s is not installed, and so its work is not tested\n", tool.c_str());
  return false;
}

// What a command of a user with a home in the workspace and nothing of this test's environment
// prints; it must succeed.
std::string work(const World& world, const std::string& mode, const std::string& command,
                 const std::string& workspace = "") {
  ProgramOptions options;
  options.cwd = workspace.empty() ? world.workspace() : workspace;
  options.environment = {{"PATH", kPath}, {"HOME", options.cwd}, {"LC_ALL", "C.UTF-8"}};
  options.timeout_ms = 110000;
  auto result = world.stockade({"exec", "--json", "--mode", mode, "--backend", world.backend,
                                "--workspace", options.cwd, "--", "set -e\n" + command},
                               options);
  INFO(mode << ": " << command << "\n" << result.out << result.err);
  auto json = nlohmann::json::parse(result.out, nullptr, false);
  REQUIRE(json.is_object());
  CHECK(json["outcome"] == "ok");
  return json["stdout"]["text"];
}

std::string in_workspace(const World& world, const std::string& command) {
  return work(world, "workspace-write", command);
}

// A directory of the user's below `parent`, with a name that is hard on whoever quotes it.
std::string directory(const World& world, const std::string& parent, const std::string& name) {
  std::string path = parent + "/" + name;
  std::filesystem::create_directories(path);
  if (geteuid() == 0)
    for (std::string at = path; at != parent; at = at.substr(0, at.rfind('/')))
      CHECK(chown(at.c_str(), world.uid, world.uid) == 0);
  return path;
}

const char* kCommit =
    "git init -q . ; git config user.name n; git config user.email e@example.org\n"
    "echo 1 > f; git add f; git commit -q -m one; echo 2 >> f\n";

}  // namespace

BACKEND_TEST("git makes a repository, a commit, a branch and a merge") {
  std::string out = in_workspace(
      world, std::string(kCommit) +
                 "git status --porcelain; git checkout -q -b b; git commit -q -a -m two\n"
                 "git checkout -q -; git merge -q b; git log --oneline | wc -l; git stash list\n"
                 "git clone -q . copy; git -C copy log --format=%s; git gc -q");
  CHECK_THAT(out, ContainsSubstring(" M f\n2\n"));
  CHECK_THAT(out, ContainsSubstring("two\none\n"));
  CHECK(work(world, "read-only",
             "git log --format=%s; git status --short; git diff HEAD~1 --stat") != "");
}

BACKEND_TEST("a C program is built by make and runs") {
  in_workspace(world,
               "printf '#include <stdio.h>\\nint main(void) { puts(\"built\"); }\\n' > m.c\n"
               "printf 'm: m.o\\n\\tcc m.o -o m\\nm.o: m.c\\n\\tcc -g -c m.c\\n' > Makefile\n"
               "make -s -j2; ./m; make -q; touch -d '+1 hour' m.c; ! make -q");
  CHECK(in_workspace(world, "./m") == "built\n");
  CHECK(work(world, "read-only", "./m; gcc -E m.c | tail -1 | wc -l") == "built\n1\n");
}

BACKEND_TEST("python works with processes, locks and temporary files") {
  std::string out = in_workspace(
      world,
      "cat > w.py <<'PY'\n"
      "import multiprocessing as mp, os, sqlite3, subprocess, tempfile\n"
      "def square(x): return x * x\n"
      "if __name__ == '__main__':\n"
      "    lock = mp.Lock()\n"
      "    with lock: print(sum(mp.Pool(3).map(square, range(10))))\n"
      "    with tempfile.NamedTemporaryFile() as f: os.fchmod(f.fileno(), 0o600)\n"
      "    with tempfile.TemporaryDirectory() as d: open(d + '/f', 'w').write('x')\n"
      "    with tempfile.TemporaryFile() as f: os.fchmod(f.fileno(), 0o640)\n"
      "    c = sqlite3.connect('d.sqlite'); c.execute('create table t (a)'); c.commit()\n"
      "    print(subprocess.check_output(['echo', 'child'], text=True).strip())\n"
      "PY\n"
      "python3 w.py; python3 -m compileall -q w.py; python3 -c 'import socket; "
      "a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))'");
  CHECK(out == "285\nchild\nb'x'\n");
  CHECK(work(world, "read-only", "python3 -B -c 'print(6*7)'; python3 -B -c 'import w'") == "42\n");
}

BACKEND_TEST("node, npm and cargo work where they are installed") {
  if (installed("node")) {
    CHECK(in_workspace(world,
                       "node -e 'require(\"fs\").writeFileSync(\"n\", \"x\"); "
                       "new (require(\"worker_threads\").Worker)(\"1\", {eval: true})'\n"
                       "cat n") == "x");
    CHECK(work(world, "read-only", "node -e 'console.log(6*7)'") == "42\n");
  }
  if (installed("npm"))
    in_workspace(world,
                 "mkdir p dep; cd dep; echo '{\"name\":\"dep\",\"version\":\"1.0.0\"}' > "
                 "package.json; cd ../p; npm init -y >/dev/null; npm install --offline "
                 "--no-audit --no-fund ../dep >/dev/null; [ -e node_modules/dep ]");
  if (installed("cargo")) in_workspace(world, "cargo init -q --name c c; cd c; cargo run -q");
}

BACKEND_TEST("tar, cp and install keep modes, times and attributes") {
  std::string out = in_workspace(
      world,
      "mkdir t; echo x > t/f; chmod 751 t/f; touch -d @1000000000 t/f; ln -s f t/l; ln t/f t/h\n"
      "mkfifo t/p; tar cf t.tar t; mkdir u; tar xpf t.tar -C u; stat -c '%a %Y' u/t/f\n"
      "[ u/t/f -ef u/t/h ]; readlink u/t/l; cp -a t v; stat -c '%a %Y' v/f; cp -p t/f w\n"
      "stat -c '%a %Y' w; install -m 700 t/f i; stat -c %a i; mv t/f moved; chmod -R u+w,g-w u\n"
      "rm -rf t u v; chown \"$(id -u):$(id -g)\" moved; touch -h -d @5 i; stat -c %Y i");
  CHECK(out == "751 1000000000\nf\n751 1000000000\n751 1000000000\n700\n5\n");
  CHECK(work(world, "read-only", "tar tf t.tar | wc -l") == "5\n");
}

BACKEND_TEST("temporary files are made, and found again by the next call") {
  CHECK(in_workspace(world,
                     "f=$(mktemp); echo x > $f; d=$(mktemp -d); chmod 755 $d; cat $f; "
                     "rm -r $f $d; sort -u <<< b; echo $TMPDIR | wc -l") == "x\nb\n1\n");
  ProgramOptions options;
  std::string name = "/tmp/stockade-work-" + std::to_string(getpid());
  for (const std::string& command : {"echo kept > " + name, "cat " + name + "; rm " + name})
    options.input +=
        nlohmann::json{{"id", command}, {"tool", "bash"}, {"arguments", {{"command", command}}}}
            .dump() +
        "\n";
  auto program = world.stockade(
      {"run", "--mode", "workspace-write", "--backend", world.backend, "-"}, options);
  INFO(program.out << program.err);
  CHECK_THAT(program.out, ContainsSubstring(R"("text":"kept\n")"));
}

BACKEND_TEST("a terminal is there for who asks for one") {
  // Of the sandbox's own; under `landlock`, which has no view of its own, the host's, which are not
  // the command's to write.
  if (world.backend == "landlock") return;
  for (const char* mode : {"read-only", "workspace-write"})
    CHECK_THAT(work(world, mode, "script -qec 'tty; echo in' /dev/null </dev/null"),
               ContainsSubstring("/dev/pts/"));
}

BACKEND_TEST("gdb runs a program and prints its stack") {
  if (!installed("gdb")) return;
  in_workspace(world,
               "echo 'int f(int x) { return x; } int main(void) { return f(7); }' > g.c; "
               "gcc -g g.c -o g");
  for (const char* mode : {"read-only", "workspace-write"})
    CHECK_THAT(work(world, mode,
                    "gdb -q -nx -batch -ex 'break f' -ex run -ex bt -ex kill ./g 2>&1 </dev/null"),
               ContainsSubstring("f (x=7)"));
}

BACKEND_TEST("the shell's own files are there") {
  for (const char* mode : {"read-only", "workspace-write"}) {
    std::string out = work(
        world, mode,
        "echo o > /dev/stdout; echo e > /dev/stderr; echo x | cat /dev/stdin; echo s | tee "
        "/dev/stderr\n"
        "diff <(echo a) <(echo a); cat <<END\nhere\nEND\n"
        "cat <<< string; exec 5< <(echo fd); cat /dev/fd/5; : > /dev/null; echo n >> /dev/null\n"
        "head -c 4 /dev/urandom | wc -c; head -c 3 /dev/zero | wc -c; ! (echo x > /dev/full)\n"
        "! (: < /dev/tty)\n"
        "seq 3 | while read n; do echo -n $n; done; echo; ulimit -n > /dev/null; [ -r "
        "/proc/self/maps ]"
        " 2>/dev/null");
    CHECK(out == "o\nx\ns\nhere\nstring\nfd\n4\n3\n123\n");
  }
}

BACKEND_TEST("a thousand files come and go") {
  CHECK(in_workspace(world,
                     "mkdir many; cd many; for i in $(seq 1000); do echo $i > $i; done\n"
                     "chmod 600 *; ls | wc -l; grep -l 777 * | wc -l; cd ..; mv many more\n"
                     "find more -type f -newermt @0 | wc -l; rm -r more") == "1000\n1\n1000\n");
}

BACKEND_TEST("a workspace may have any path") {
  std::string deep;
  for (int i = 0; i < 15; ++i) deep += "/" + std::string(200, static_cast<char>('a' + i));
  Scratch below_tmp("/tmp");
  CHECK(chmod(below_tmp.path().c_str(), 0755) == 0);
  std::string parent = world.outside();
  for (const std::string& workspace :
       {directory(world, below_tmp.path(), "w"), directory(world, parent, "sp ace  two"),
        directory(world, parent, "new\nline"), directory(world, parent, "ünï ✓ 日本"),
        directory(world, parent, "quo\"te's $(touch x) `y` \\"), directory(world, parent, "-dash"),
        directory(world, parent, "co:lon,comma"), directory(world, parent, "deep" + deep)}) {
    CHECK(work(world, "workspace-write",
               "echo x > \"$PWD/t\"; chmod 711 t; mkdir -p d; mv t d; cat d/t; mktemp >/dev/null",
               workspace) == "x\n");
    CHECK(exists(workspace + "/d/t"));
  }
  CHECK_FALSE(exists(parent + "/x"));
}

BACKEND_TEST("a workspace may hold a mount") {
  if (geteuid() != 0) {
    std::printf("note: only root can mount, and so a nested mount is not tested\n");
    return;
  }
  std::string path = directory(world, world.workspace(), "mnt");
  REQUIRE(mount("tmpfs", path.c_str(), "tmpfs", 0, "mode=755") == 0);
  CHECK(chown(path.c_str(), world.uid, world.uid) == 0);
  std::string out = in_workspace(world, "echo x > mnt/f; chmod 711 mnt/f; cat mnt/f; rm mnt/f");
  umount2(path.c_str(), MNT_DETACH);
  CHECK(out == "x\n");
}
