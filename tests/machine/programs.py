# SPDX-License-Identifier: Apache-2.0
"""Real programs and what to do with them. Each script runs outside and inside, and both must print the same.

A script runs with `sh -e` in an empty directory that has the same path on both sides. It prints only what
cannot differ: no times, pids or ports. `needs` names the commands without which the host skips it. `rule`
is a rule of policies/coding.yaml: the script runs through the gateway under that rule alone. `prepare` runs
outside before each of the two, so that its files lie in a lower layer inside. A program with `expect` runs only
inside, and prints that.
"""

import collections

Program = collections.namedtuple('Program', 'name needs script rule options expect deep prepare', defaults=((), '', None, (), None, False, ''))

GIT = '''
export GIT_AUTHOR_DATE=2026-01-01T00:00:00Z GIT_COMMITTER_DATE=2026-01-01T00:00:00Z GIT_CONFIG_GLOBAL=$PWD/gitconfig
git config --global user.name x; git config --global user.email x@y; git config --global init.defaultBranch main
mkdir repo && cd repo && git init -q
mkdir src && printf 'one\\ntwo\\n' > src/a && git add . && git commit -qm one
git branch side && printf 'three\\n' >> src/a && git commit -qam two
git checkout -q side && printf 'zero\\n' > b && git add b && git commit -qm three && git merge -q main -m merged
git worktree add -q ../tree main~1 2>/dev/null || git worktree add -q --detach ../tree main~1
git stash list; git gc -q; git fsck; git clone -q . ../copy
git log --oneline --stat --all; cat ../tree/src/a; git -C ../copy status -sb
'''

NODE = '''
cat > main.js <<'END'
const fs = require('fs'), http = require('http'), os = require('os'), { Worker } = require('worker_threads');
const { execFileSync } = require('child_process');
fs.mkdirSync('d'); fs.writeFileSync('d/f', 'text'); fs.renameSync('d/f', 'd/g'); fs.symlinkSync('g', 'd/l');
console.log(fs.readdirSync('d'), fs.readFileSync('d/l', 'utf8'), execFileSync('echo', ['child']).toString().trim());
const watcher = fs.watch('d', (kind, name) => { console.log('seen', name); watcher.close(); serve(); });
setTimeout(() => fs.writeFileSync('d/new', ''), 50);
function serve() {
  const server = http.createServer((q, a) => a.end('hello ' + q.url)).listen(0, 'localhost', () =>
    fetch(`http://localhost:${server.address().port}/x`).then(a => a.text()).then(t => { console.log(t); server.close(); work(); }));
}
function work() { new Worker('require("worker_threads").parentPort.postMessage(6 * 7)', { eval: true }).on('message', n => console.log(n)); }
END
node main.js
'''

NPM = '''
export npm_config_cache=$PWD/cache npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false
mkdir lib app && cd lib
echo '{"name":"lib","version":"1.0.0","main":"i.js","bin":{"libtool":"i.js"}}' > package.json
printf '#!/usr/bin/env node\\nmodule.exports = 42; if (require.main === module) console.log("tool");\\n' > i.js
npm pack --silent && cd ../app
echo 'console.log(require("lib"))' > main.js
echo '{"name":"app","version":"1.0.0","scripts":{"start":"node main.js"}}' > package.json
npm install --offline --silent ../lib/lib-1.0.0.tgz && npm run --silent start && npx --no-install libtool
rm -rf node_modules && ls
'''

PIP = '''
mkdir -p w/small w/small-1.0.dist-info && cd w
echo 'def answer(): return 42' > small/__init__.py
printf 'Metadata-Version: 2.1\\nName: small\\nVersion: 1.0\\n' > small-1.0.dist-info/METADATA
printf 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n' > small-1.0.dist-info/WHEEL
printf 'small/__init__.py,,\\nsmall-1.0.dist-info/METADATA,,\\nsmall-1.0.dist-info/WHEEL,,\\nsmall-1.0.dist-info/RECORD,,\\n' > small-1.0.dist-info/RECORD
/usr/bin/python3 -c 'import shutil; shutil.make_archive("../s", "zip", ".")' && cd .. && mv s.zip small-1.0-py3-none-any.whl
/usr/bin/python3 -m venv --system-site-packages v 2>/dev/null && v/bin/python -m pip install -q --no-index --no-deps --no-cache-dir ./small-1.0-py3-none-any.whl
v/bin/python -c 'import small; print(small.answer())' && v/bin/python -m pip show small 2>/dev/null | head -2
'''

COMPILE = '''
cat > Makefile <<'END'
all: one two
%: %.c ; $(CC) -g -O1 -fsanitize=address,undefined -o $@ $<
END
printf '#include <stdio.h>\\nint main(void) { puts("one"); return 0; }\\n' > one.c
printf '#include <stdlib.h>\\nint main(void) { char *p = malloc(4); p[4] = 1; free(p); return 0; }\\n' > two.c
make -sj2 && ./one && (./two 2>&1 | grep -o heap-buffer-overflow | head -1)
'''

DEBUG = '''
printf 'int deep(int n) { return n ? deep(n - 1) : *(volatile int *)0; }\\nint main(void) { return deep(3); }\\n' > c.c
gcc -g -O0 -o c c.c
gdb -q -batch -ex run -ex bt ./c 2>/dev/null | grep -c 'deep (n='
strace -f -o log sh -c 'cat c.c >/dev/null; true' && grep -q 'execve(.*cat' log && grep -q '"c.c"' log && echo traced
'''

VALGRIND = '''
printf '#include <stdlib.h>\\nint main(void) { return malloc(10) == 0; }\\n' > c.c && gcc -g -o c c.c
valgrind --leak-check=full --error-exitcode=3 ./c 2>&1 | grep -o 'definitely lost: 10 bytes in 1 blocks' | head -1
'''

TMUX = '''
export TMUX_TMPDIR=$PWD
tmux -f /dev/null new-session -d -x 80 -y 24 'echo in-tmux; tty | cut -c1-8; exec cat'
for i in $(seq 100); do tmux capture-pane -p | grep -q /dev/pts && break; sleep 0.05; done
tmux capture-pane -p | head -2; tmux kill-server
'''

SQLITE = '''
python3 -c "
import sqlite3, multiprocessing, os
db = sqlite3.connect('x.db'); db.execute('pragma journal_mode=wal'); db.execute('create table t(n)')
def add(n):
    c = sqlite3.connect('x.db', timeout=60)
    for i in range(50): c.execute('insert into t values (?)', (n,)); c.commit()
ps = [multiprocessing.Process(target=add, args=(n,)) for n in range(4)]
[p.start() for p in ps]; [p.join() for p in ps]
print(db.execute('select count(*), sum(n) from t').fetchone())
"
'''

# Two users run these side by side outside: each has its own port.
REDIS = '''
port=$((7000 + $(id -u) % 977))
redis-server --port $port --save '' --dir . --daemonize yes --pidfile $PWD/pid >/dev/null
for i in $(seq 100); do redis-cli -p $port ping >/dev/null 2>&1 && break; sleep 0.05; done
redis-cli -p $port set a 1; redis-cli -p $port incr a; redis-cli -p $port shutdown nosave 2>/dev/null || true
'''

NGINX = '''
port=$((8000 + $(id -u) % 977))
mkdir -p www && echo page > www/index.html
cat > conf <<END
$([ $(id -u) != 0 ] || echo 'user root;')  # whose workers can look into this directory
pid $PWD/pid; error_log $PWD/err; daemon on;
events { }
http { access_log off; client_body_temp_path $PWD/t1; proxy_temp_path $PWD/t2; fastcgi_temp_path $PWD/t3; uwsgi_temp_path $PWD/t4; scgi_temp_path $PWD/t5;
  server { listen 127.0.0.1:$port; root $PWD/www; } }
END
nginx -c $PWD/conf -e $PWD/err && curl -s http://127.0.0.1:$port/ && curl -s -o /dev/null -w '%{http_code}\\n' http://127.0.0.1:$port/no && nginx -c $PWD/conf -e $PWD/err -s stop
while [ -e pid ]; do sleep 0.05; done
'''

JAVA = '''
printf 'public class A { public static void main(String[] a) throws Exception { var t = new Thread(() -> System.out.println(6 * 7)); t.start(); t.join(); } }\\n' > A.java
javac A.java && java -Xshare:auto A
'''

POSTGRES = '''
bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
$bin/initdb -D data -A trust >/dev/null && $bin/pg_ctl -D data -o "-k $PWD -p 7393 -h ''" -l log -w start >/dev/null
$bin/psql -h $PWD -p 7393 -d postgres -Atc 'create table t(n int); insert into t select generate_series(1, 1000); select sum(n) from t'
$bin/pg_ctl -D data -m fast stop >/dev/null
'''

# The parent's number of names, and a name of both packages: an install replaces whole directories of the lower tree.
OVER = '''
export npm_config_cache=$PWD/c npm_config_store_dir=$PWD/s
INSTALL
node -p "[require('left-pad')(7, 3, 0), require('is-odd')(3), require('is-odd/package.json').version]"
ls node_modules | grep -x 'left-pad\\|is-odd'
'''
NPM_QUIET = 'npm install --silent --no-audit --no-fund'


def over(first, second):
    """Install a package where an older install of it, made outside, is in the lower layer."""
    return {'prepare': 'export npm_config_cache=$PWD/c npm_config_store_dir=$PWD/s; echo \'{"name":"x","version":"1.0.0"}\' > package.json; ' + first, 'script': OVER.replace('INSTALL', second)}


NEXT = '''
export npm_config_cache=$PWD/c NEXT_TELEMETRY_DISABLED=1
mkdir -p app/pages && cd app
echo '{"name":"x","version":"1.0.0","scripts":{"build":"next build"}}' > package.json
echo 'export default function Page() { return <p>hello</p> }' > pages/index.js
npm install --silent --no-audit --no-fund next@14 react@18 react-dom@18
npx next build >log 2>&1 || { tail -20 log; exit 1; }
grep -c 'Compiled successfully' log; grep -o '<p>hello</p>' .next/server/pages/index.html
'''

CHROMIUM = '''
export npm_config_cache=$PWD/c PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1
npm install --silent --no-audit --no-fund playwright-core@1.48
cat > main.js <<'END'
const { chromium } = require('playwright-core'), http = require('http');
(async () => {
  const server = http.createServer((q, a) => { a.setHeader('content-type', 'text/html'); a.end('<title>page</title><p id=x>no</p><script>x.textContent = 6 * 7</script>'); });
  await new Promise(go => server.listen(0, '127.0.0.1', go));
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: process.argv.slice(2) });
  const page = await browser.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/`);
  console.log(await page.title(), await page.textContent('#x'), (await page.screenshot()).length > 1000);
  await browser.close(); server.close();
})();
END
node main.js ARGS
'''

# cron itself needs root; the table's minute is every one, so that this takes at most a minute.
CRON = '''
mkdir -p /etc/cron.d /var/spool/cron/crontabs && chmod 730 /var/spool/cron/crontabs
echo "* * * * * root echo from-cron > $PWD/out" > /etc/cron.d/x && chmod 644 /etc/cron.d/x
cron -f & for i in $(seq 650); do [ -s out ] && break; sleep 0.1; done
cat out; kill $!
'''

ERGONOMICS = '''
printf 'public class A { public static void main(String[] a) { Runtime r = Runtime.getRuntime(); System.out.println(r.availableProcessors() + " " + (r.maxMemory() >> 20 < 600)); } }\\n' > A.java
javac A.java && java A
node -p "const v = require('v8').getHeapStatistics().heap_size_limit / 1048576; [require('os').cpus().length, Math.round(require('os').totalmem() / 1048576), v < 1200]"
python3 -c "import os; print(os.cpu_count(), len(os.sched_getaffinity(0)))"; nproc; free -m | awk '/Mem/ { print $2 }'
'''

VITE = '''
export npm_config_cache=$PWD/cache npm_config_audit=false npm_config_fund=false
npm create --yes --silent vite@5 app -- --template vanilla >/dev/null 2>&1 && cd app && npm install --silent >/dev/null 2>&1 && npx vite build 2>&1 | grep -c 'built in'
'''

PROGRAMS = [
    Program('git', ('git',), GIT),
    Program('node', ('node',), NODE),
    Program('npm', ('node', 'npm'), NPM),
    Program('pip', ('/usr/bin/python3',), PIP),
    Program('compile', ('gcc', 'make'), COMPILE),
    Program('sqlite', ('python3',), SQLITE),
    Program('debug', ('gcc', 'gdb', 'strace'), DEBUG),
    Program('tmux', ('tmux',), TMUX),
    Program('redis', ('redis-server', 'redis-cli'), REDIS),
    Program('nginx', ('nginx', 'curl'), NGINX),
    # The rest takes minutes, a network, or programs that few machines have.
    Program('valgrind', ('gcc', 'valgrind'), VALGRIND, deep=True),
    Program('java', ('java', 'javac'), JAVA, deep=True),
    Program('postgresql', ('pg_ctlcluster',), POSTGRES, expect='CREATE TABLE\nINSERT 0 1000\n500500\n', deep=True),
    Program('sshd', ('dropbear', 'dbclient', 'dropbearkey'), '''
dropbearkey -t ed25519 -f host >/dev/null 2>&1; dropbearkey -t ed25519 -f own 2>/dev/null | grep ^ssh- > keys
mkdir -p ~/.ssh && cp keys ~/.ssh/authorized_keys && chmod 700 ~ ~/.ssh && chmod 600 ~/.ssh/authorized_keys
dropbear -r host -p 127.0.0.1:7394 -P $PWD/pid -s 2>/dev/null
dbclient -y -i own -p 7394 127.0.0.1 'echo over-ssh' 2>/dev/null; kill $(cat pid)
''', expect='over-ssh\n', deep=True),
    Program('npm-registry', ('npm',), 'cd "$PWD"; npm_config_cache=$PWD/c npm install --silent --no-audit --no-fund left-pad@1.3.0 && '
            'node -p "require(\'left-pad\')(7, 3, 0)"', rule='npm', deep=True),
    Program('pnpm', ('npm',), 'export npm_config_cache=$PWD/c; npx --yes pnpm@9 add --silent left-pad@1.3.0 && node -p "require(\'left-pad\')(7, 3, 0)"',
            rule='npm', deep=True),
    Program('yarn', ('npm',), 'export npm_config_cache=$PWD/c; npx --yes yarn@1 add -s --non-interactive left-pad@1.3.0 2>/dev/null && '
            'node -p "require(\'left-pad\')(7, 3, 0)"', rule='npm', deep=True),
    Program('npm-over', ('npm',), rule='npm', deep=True, **over(NPM_QUIET + ' left-pad@1.2.0 is-odd@2.0.0', NPM_QUIET + ' left-pad@1.3.0 is-odd@3.0.1')),
    Program('pnpm-over', ('npm',), rule='npm', deep=True, **over('npx --yes pnpm@9 add --silent left-pad@1.2.0 is-odd@2.0.0',
                                                                 'npx --yes pnpm@9 add --silent left-pad@1.3.0 is-odd@3.0.1')),
    Program('yarn-over', ('npm',), rule='npm', deep=True, **over('npx --yes yarn@1 add -s --non-interactive left-pad@1.2.0 is-odd@2.0.0 2>/dev/null',
                                                                 'npx --yes yarn@1 add -s --non-interactive left-pad@1.3.0 is-odd@3.0.1 2>/dev/null')),
    Program('numpy', ('/usr/bin/python3',), '/usr/bin/python3 -m venv v && v/bin/pip install -q --disable-pip-version-check numpy && '
            'v/bin/python -c "import numpy; print(int(numpy.arange(10).sum()))"', rule='pypi', deep=True),
    Program('source-build', ('/usr/bin/python3', 'gcc'), '/usr/bin/python3 -m venv v && v/bin/pip install -q --disable-pip-version-check --no-binary :all: '
            'markupsafe && v/bin/python -c "import markupsafe; print(markupsafe.escape(\'<\'))"', rule='pypi', deep=True),
    Program('cargo', ('cargo',), 'export CARGO_HOME=$PWD/h; cargo init -q --name x --bin . 2>/dev/null && cargo add -q serde_json regex rayon clap tokio chrono uuid '
            'itertools rand >/dev/null 2>&1 && cargo build -q && ./target/debug/x && [ $(grep -c "^name" Cargo.lock) -gt 50 ] && echo more than 50 crates',
            rule='crates', options=('--toolchains',), deep=True),
    Program('go', ('go',), 'export PATH=$PATH:/usr/local/go/bin GOPATH=$PWD/g GOFLAGS=-modcacherw; go mod init x 2>/dev/null && printf \'package main\\nimport ("fmt"; "github.com/google/uuid")\\n'
            'func main() { fmt.Println(len(uuid.NewString())) }\\n\' > m.go && go mod tidy 2>/dev/null && go build -o x . && ./x', rule='go', deep=True),
    Program('maven', ('mvn', 'java'), 'mvn -q -B -Dmaven.repo.local=$PWD/m archetype:generate -DgroupId=x -DartifactId=app -DinteractiveMode=false '
            '-DarchetypeArtifactId=maven-archetype-quickstart -DarchetypeVersion=1.4 && cd app && mvn -q -B -Dmaven.repo.local=$PWD/../m package && ls target/*.jar',
            rule='maven', deep=True),
    Program('vite', ('npm',), VITE, rule='npm', deep=True),
    Program('next', ('npm',), NEXT, rule='npm', deep=True),
    Program('chromium', ('npm', 'chromium'), CHROMIUM.replace('ARGS', '--no-sandbox'), rule='npm', deep=True),
    Program('chromium-nested', ('npm', 'chromium'), CHROMIUM.replace('ARGS', ''), rule='npm', options=('--nested',), expect='page 42 true\n', deep=True),
    Program('cron', ('cron',), CRON, options=('--user', 'root'), expect='from-cron\n', deep=True),
    Program('jvm-and-limits', ('java', 'javac', 'node'), ERGONOMICS, options=('--memory', '2G', '--cpus', '1'),
            expect='1 true\n[ 1, 2048, true ]\n1 1\n1\n2048\n', deep=True),
    Program('better-sqlite3', ('npm', 'gcc', 'make'), 'export npm_config_cache=$PWD/c; echo {} > package.json; '
            'if [ -d /usr/include/node ]; then export npm_config_nodedir=/usr; fi; '
            'npm install --silent --no-audit --no-fund --build-from-source better-sqlite3 && '
            'node -p "new (require(\'better-sqlite3\'))(\':memory:\').prepare(\'select 6*7 as n\').get().n"', rule='npm', deep=True),
    *(Program(f'agent-{name}', ('npm',), f'export npm_config_cache=$PWD/c; npx --yes {package} --version >/dev/null && echo ok; '
              f'npx --yes {package} mcp list 2>&1 </dev/null | tail -1 | sed "s/[^a-zA-Z ]//g"', rule='npm', deep=True)
      for name, package in (('claude', '@anthropic-ai/claude-code'), ('codex', '@openai/codex'), ('gemini', '@google/gemini-cli'), ('opencode', 'opencode-ai'))),
]
