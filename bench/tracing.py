# SPDX-License-Identifier: Apache-2.0
"""The cost of the full trace for a workload, against tracing calls only and against no sandbox."""

import json
import os
import random
import shutil
import statistics

import lab as lab_module
from memory import processes_of

HEAD = '''#include <ctype.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node { struct node *next; const char *key; uint64_t value; int weight; };
'''

BODY = '''
static int compare_%(n)d(const void *a, const void *b)
{
	const struct node *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? -1 : 1;
	return strcmp(x->key, y->key) * %(sign)d;
}

struct node *insert_%(n)d(struct node **at, const char *key, uint64_t value)
{
	struct node *fresh = calloc(1, sizeof *fresh);

	if (!fresh) {
		fprintf(stderr, "insert %%s: %%s\\n", key, strerror(errno));
		return NULL;
	}
	while (*at && strcmp((*at)->key, key) < 0)
		at = &(*at)->next;
	*fresh = (struct node){ *at, key, value * %(k)d, (int)(value %% %(m)d) };
	return *at = fresh;
}

size_t sort_%(n)d(struct node *all, size_t count, char *out, size_t room)
{
	size_t used = 0;

	qsort(all, count, sizeof *all, compare_%(n)d);
	for (size_t i = 0; i < count && used < room; i++) {
		int c = toupper((unsigned char)all[i].key[0]);

		used += (size_t)snprintf(out + used, room - used, "%%c%%s=%%llu;", c, all[i].key + 1,
					 (unsigned long long)(all[i].value ^ %(k)du));
		switch (all[i].weight %% 5) {
		case 0: used ^= 1; break;
		case 1: all[i].value += used * %(m)d; break;
		case 2: all[i].value ^= all[i].value << 7; break;
		default: all[i].weight--; break;
		}
	}
	return used;
}
'''


def project(folder, files):
    """Sources of about 350 lines each, and a Makefile that always builds all of them."""
    os.makedirs(folder)
    luck = random.Random(7)
    for i in range(files):
        with open(os.path.join(folder, f'unit{i}.c'), 'w', encoding='utf-8') as f:
            f.write(HEAD)
            for part in range(8):
                f.write(BODY % {'n': i * 100 + part, 'sign': luck.choice((1, -1)), 'k': luck.randint(3, 999),
                                'm': luck.randint(3, 99)})
    with open(os.path.join(folder, 'Makefile'), 'w', encoding='utf-8') as f:
        f.write('OBJECTS := $(patsubst %.c,%.o,$(wildcard *.c))\n'
                'all.a: $(OBJECTS)\n\trm -f $@ && ar rcs $@ $^\n'
                '%.o: %.c\n\tgcc -O1 -Wall -c -o $@ $<\n')


def own_cpu_us(pid):
    """Of the process itself, not of its children."""
    with open(f'/proc/{pid}/stat', encoding='utf-8', errors='replace') as f:
        user, system = f.read().rsplit(')', 1)[1].split()[11:13]
    return (int(user) + int(system)) * 1000000 // os.sysconf('SC_CLK_TCK')


class Box:
    """A sandbox of which we know what its calls and its keepers burn."""

    def __init__(self, lab, state, level, options):
        self.level = level
        self.id = lab.create(state, '--trace', level, *options)
        self.folder = os.path.join(state, 'sandboxes', self.id)
        self.keepers = processes_of(self.folder)
        self.before = self.keepers_us()

    def keepers_us(self):
        return sum(map(own_cpu_us, self.keepers))

    def cpu_ms(self):
        """Of one call, with its share of warden and init."""
        with open(os.path.join(self.folder, 'trace.jsonl'), encoding='utf-8') as f:
            events = [json.loads(line) for line in f if '"call.exit"' in line]
        calls = [event['cpu_us'] for event in events if event.get('kind') == 'call.exit']
        return (statistics.median(calls) + (self.keepers_us() - self.before) / len(calls)) / 1e3


def run(lab, title, rounds, seconds, state, options, inside, outside, limit):
    boxes = [Box(lab, state, level, options) for level in ('full', 'calls')]
    times = lab.turns(rounds, seconds, [
        *((box.level, 1, {'CAY_STATE': state}, [lab.cay, 'exec', box.id, '--', *inside]) for box in boxes),
        ('bare', 1, {}, outside)])
    lab.raw[title] = lab_module.summary(times)
    ms = {name: lab_module.median_ms(runs) for name, runs in times.items()}
    done = f'{len(times["full"])} rounds'
    lab.promise(f'{title}: trace full / calls', lab_module.paired(times['full'], times['calls']), limit,
                detail=f'{ms["full"]:.0f} / {ms["calls"]:.0f} ms, {done}')
    for level in ('full', 'calls'):
        lab.fact(f'{title}: trace {level} / outside', lab_module.paired(times[level], times['bare']), 'x',
                 f'{ms[level]:.0f} / {ms["bare"]:.0f} ms')
    cpu = {box.level: box.cpu_ms() for box in boxes}
    cpu['bare'] = lab.raw[title]['bare']['cpu_ms']
    lab.raw[title + ', CPU ms'] = cpu
    lab.fact(f'{title}: CPU, trace full / calls', cpu['full'] / cpu['calls'], 'x',
             f'{cpu["full"]:.0f} / {cpu["calls"]:.0f} ms; outside {cpu["bare"]:.0f}')
    lab.cay_says(state, 'kill', '--all')


def bench(lab):
    state = lab.state('tracing', in_memory=True)
    count = lab.pick(2000, 400)
    run(lab, f'{count} short processes', lab.pick(9, 3), lab.pick(90, 8), state,
        ['--ro', f'{lab.many}:/opt/many'], ['/opt/many', str(count), '/bin/true'],
        [lab.many, str(count), '/bin/true'], 1.05)
    if not shutil.which('gcc') or not shutil.which('make'):
        lab.skip('compile', 'gcc or make is not installed')
        return
    files = lab.pick(60, 12)
    sources, twin = os.path.join(lab.memory, 'sources'), os.path.join(lab.memory, 'twin')
    project(sources, files)
    shutil.copytree(sources, twin)
    run(lab, f'compile of {files} files', lab.pick(9, 3), lab.pick(100, 8), state, ['--dir', f'{sources}:/src'],
        ['make', '-s', '-B', '-j2', '-C', '/src'], ['make', '-s', '-B', '-j2', '-C', twin], 1.03)
