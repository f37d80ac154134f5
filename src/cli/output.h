/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output of commands: safe text, colours, readable numbers, tables, JSON. stdout carries data,
 * stderr carries notes and errors. Everything goes through stdio; cli_main checks once, at the end,
 * that stdout accepted everything.
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

/* Sets ctx->color_out and color_err. */
void out_colors(struct cmd_ctx *ctx);
/* The escape sequence, or "" if colours are off. OUT_PLAIN ends a colour. */
const char *out_sgr(bool on, enum out_color c);
/* Columns of the terminal on stdout, or 0 if it is not a terminal. */
int out_width(void);

/* Decodes one UTF-8 sequence of at most n bytes. Returns its length, or 0 if it is invalid. */
int out_utf8(const char *p, size_t n, uint32_t *ret);
/* out_safe() to any stream, for a view. */
void out_safe_to(FILE *f, struct str text);
/* An allocated copy of text without terminal control characters; NULL if out of memory. */
char *out_safe_dup(struct str text);
/* The number of columns of a safe text. */
int out_columns(const char *text);
/*
 * Wraps text at 80 columns. The first line starts at column `at`, the others are indented. Keeps
 * lines that start with a blank, and the line break before them.
 */
void out_wrap(FILE *f, const char *text, int indent, int at);

enum { OUT_NUMBER = 24 };
/* 512B, 1.5K, 20M. */
const char *out_size(uint64_t bytes, char out[OUT_NUMBER]);
/* 850us, 12ms, 1.2s, 3m04s, 2h05m, 3d04h. */
const char *out_duration(uint64_t us, char out[OUT_NUMBER]);
/* 5s, 3m, 2h, 4d: only the largest unit. */
const char *out_age(uint64_t since_ns, uint64_t now_ns, char out[OUT_NUMBER]);

/* A JSON array of arguments in shell syntax, allocated; NULL if it is not such an array. */
char *argv_text(const char *json);

/* Tables. */
struct out_col {
	const char *title;
	bool right; /* right-aligned */
	bool cut;   /* may be shortened to fit the terminal; other columns never are */
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
/* Add the next cell, row by row; the text is copied and made safe. Returns 0 or -ENOMEM. */
int out_cell(struct out_table *t, enum out_color color, const char *text);
int out_cellf(struct out_table *t, enum out_color color, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* width 0: nothing is cut. */
void out_table_print(const struct out_table *t, FILE *f, int width, bool header, bool color);

/*
 * Sends all JSON to the user's file or descriptor (--json-file, --json-fd), so that it does not mix
 * with other output. INVALID for a descriptor that is not open for writing.
 */
int out_json_to(const struct cmd_ctx *ctx, struct err *e);
/* The user's destination, or this stream. */
FILE *out_json_stream(FILE *otherwise);
/* Every top-level object starts with this sandbox's id from now on. */
void out_json_about(const char *sandbox);
/* Flush. Returns 0 or -errno. */
int out_json_finish(void);

/* A line of JSON: begin, write to l.json (wire/json_write.h, ops/json.h), print. */
struct json_line {
	struct buf text;
	struct json json;
};

void json_line_begin(struct json_line *l);
/* Prints it on stdout. If memory ran out, the line says so. */
void json_line_print(struct json_line *l);
void json_line_print_to(struct json_line *l, FILE *f);
#define PRINT_JSON(fn, ...) \
	do { \
		struct json_line line_; \
		json_line_begin(&line_); \
		fn(&line_.json, __VA_ARGS__); \
		json_line_print(&line_); \
	} while (0)
