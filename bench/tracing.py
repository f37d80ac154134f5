# SPDX-License-Identifier: Apache-2.0
"""What the full trace costs a workload: against calls only, and against no sandbox."""

import os
import random
import shutil

import lab as lab_module

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


def run(lab, title, rounds, ways, limit):
    times = lab.turns(rounds, ways)
    lab.raw[title] = lab_module.summary(times)
    ratio = lab_module.paired(times['full'], times['calls'])
    ms = {name: lab_module.median_ms(runs) for name, runs in times.items()}
    lab.promise(f'{title}: trace full / calls', ratio, limit, detail=f'{ms["full"]:.0f} / {ms["calls"]:.0f} ms')
    lab.fact(f'{title}: trace full / outside', lab_module.paired(times['full'], times['bare']), 'x',
             f'{ms["full"]:.0f} / {ms["bare"]:.0f} ms')
    lab.fact(f'{title}: trace calls / outside', lab_module.paired(times['calls'], times['bare']), 'x',
             f'{ms["calls"]:.0f} / {ms["bare"]:.0f} ms')


def ways(lab, state, options, inside, outside):
    env = {'CAY_STATE': state}
    boxes = {level: lab.create(state, '--trace', level, *options) for level in ('full', 'calls')}
    return [(level, 1, env, [lab.cay, 'exec', box, '--', *inside]) for level, box in boxes.items()] + [
        ('bare', 1, {}, outside)]


def bench(lab):
    state = lab.state('tracing', in_memory=True)
    count = lab.pick(2000, 400)
    run(lab, f'{count} short processes', lab.pick(9, 3), ways(
        lab, state, ['--ro', f'{lab.many}:/opt/many'], ['/opt/many', str(count), '/bin/true'],
        [lab.many, str(count), '/bin/true']), 1.05)
    if not shutil.which('gcc') or not shutil.which('make'):
        lab.skip('compile', 'gcc or make is not installed')
        return
    files = lab.pick(60, 12)
    sources, twin = os.path.join(lab.memory, 'sources'), os.path.join(lab.memory, 'twin')
    project(sources, files)
    shutil.copytree(sources, twin)
    run(lab, f'compile of {files} files', lab.pick(9, 3), ways(
        lab, state, ['--dir', f'{sources}:/src'], ['make', '-s', '-B', '-j2', '-C', '/src'],
        ['make', '-s', '-B', '-j2', '-C', twin]), 1.03)
    lab.cay_says(state, 'kill', '--all')
