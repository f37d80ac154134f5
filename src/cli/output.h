/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What commands print: safe text, colours, numbers for people, tables, JSON.
 * stdout carries data, stderr notes and errors. All of it goes through stdio; cli_main looks
 * once, at the end, whether stdout took everything.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/cmd.h"
#include "wire/json_write.h"

enum out_color { OUT_PLAIN, OUT_BOLD, OUT_DIM, OUT_RED, OUT_GREEN, OUT_YELLOW };

/* Decide ctx->color_out and color_err. */
void out_colors(struct cmd_ctx *ctx);
/* The escape sequence, or "" where colours are off. OUT_PLAIN ends a colour. */
const char *out_sgr(bool on, enum out_color c);
/* Columns of the terminal on stdout, or 0 where it is none. */
int out_width(void);

/* One UTF-8 sequence of at most n bytes: its length, or 0 where it is not valid. */
int out_utf8(const char *p, size_t n, uint32_t *ret);
/* out_safe() to any stream, for a view. */
void out_safe_to(FILE *f, struct str text);
/* An allocated copy of text in which nothing can steer a terminal; NULL for lack of memory. */
char *out_safe_dup(struct str text);
/* Columns that a safe text takes. */
int out_columns(const char *text);
/*
 * Words of text in lines of at most 80 columns. The first begins at column `at`, the others
 * are indented. Lines that begin with a blank, and ends of lines before them, stay.
 */
void out_wrap(FILE *f, const char *text, int indent, int at);

enum { OUT_NUMBER = 24 };
/* 512B, 1.5K, 20M. */
const char *out_size(uint64_t bytes, char out[OUT_NUMBER]);
/* 850us, 12ms, 1.2s, 3m04s, 2h05m, 3d04h. */
const char *out_duration(uint64_t us, char out[OUT_NUMBER]);
/* 5s, 3m, 2h, 4d: one unit, the largest. */
const char *out_age(uint64_t since_ns, uint64_t now_ns, char out[OUT_NUMBER]);

/* A JSON array of arguments as a shell would read it, allocated; NULL where it is none. */
char *argv_text(const char *json);

/* Tables. */
struct out_col {
	const char *title;
	bool right; /* aligned */
	bool cut;   /* may be shortened to fit the terminal; others never are */
};

struct out_cell {
	char *text;
	enum out_color color;
};

struct out_table {
	const struct out_col *cols;
	int ncols;
	struct out_cell *cells;
	size_t n, cap;
};

void out_table_done(struct out_table *t);
DEFINE_AUTO(struct out_table, out_table_done)
/* The next cell, row by row; the text is copied and made safe. 0 or -ENOMEM. */
int out_cell(struct out_table *t, enum out_color color, const char *text);
int out_cellf(struct out_table *t, enum out_color color, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* width 0: nothing is cut. */
void out_table_print(const struct out_table *t, FILE *f, int width, bool header, bool color);

/*
 * All JSON goes to the file or descriptor that the user chose (--json-file, --json-fd), so that
 * nothing else is mixed with it. INVALID for a descriptor that is not open for writing.
 */
int out_json_to(const struct cmd_ctx *ctx, struct err *e);
/* The user's choice, or this stream. */
FILE *out_json_stream(FILE *otherwise);
/* Every object at the top begins with this sandbox's id. */
void out_json_about(const char *sandbox);
/* Write what is left. 0 or -errno. */
int out_json_finish(void);

/* A line of JSON: begin, write to l.json (wire/json_write.h, ops/json.h), print. */
struct json_line {
	struct buf text;
	struct json json;
};

void json_line_begin(struct json_line *l);
/* On stdout. Where the memory did not suffice the line says so. */
void json_line_print(struct json_line *l);
void json_line_print_to(struct json_line *l, FILE *f);
#define PRINT_JSON(fn, ...) \
	do { \
		struct json_line line_; \
		json_line_begin(&line_); \
		fn(&line_.json, __VA_ARGS__); \
		json_line_print(&line_); \
	} while (0)
