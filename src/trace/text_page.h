/* SPDX-License-Identifier: Apache-2.0 */
/* A line for people, made from the fields of an event. */
#pragma once

#include "trace/read.h"

enum {
	PAGE_TEXT = 640, /* maximum of any text but commands; fits a deep path */
	PAGE_LIST = 8,	 /* maximum items of an array */
};

/* Keeps the first failure. */
struct page {
	struct buf *out;
	const json_t *fields;
	int err;
	int notes; /* notes written so far */
};

void page_say(struct page *p, const char *text);
void page_sayf(struct page *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void page_say_safe(struct page *p, struct str text, size_t most);
const json_t *page_field(const struct page *p, const char *key);
int64_t page_number(const struct page *p, const char *key);
bool page_has_num(const struct page *p, const char *key);
bool page_is_set(const struct page *p, const char *key);
bool page_has(const struct page *p, const char *key);
bool page_text_is(const struct page *p, const char *key, const char *want);
void page_say_value(struct page *p, const json_t *v);
void page_say_field(struct page *p, const char *key);
void page_note(struct page *p);
void page_note_field(struct page *p, const char *before, const char *key);
void page_notes_end(struct page *p);
void page_say_size(struct page *p, int64_t bytes);
void page_say_duration(struct page *p, int64_t us);
void page_say_argv(struct page *p, const json_t *argv);
void page_say_list(struct page *p, const char *key);
