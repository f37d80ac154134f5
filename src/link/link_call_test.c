/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on a link against a scripted warden: streams, windows, ends. */
#include "link/link_fixture.h"

struct subject {
	struct link_call call;
	int started, ended, denied;
	uint64_t out, err, room;
	struct call_started how;
	struct call_result result;
	struct err why;
	bool over, failed;
	bool takes; /* takes each output at once */
	bool drops_at_output, frees_link_at_end;
};

static struct subject *subject_of(struct link_call *c)
{
	return container_of(c, struct subject, call);
}

static void on_started(struct link_call *c, const struct call_started *s)
{
	subject_of(c)->started++;
	subject_of(c)->how = *s;
}

static void on_output(struct link_call *c, enum call_stream stream, struct str data)
{
	struct subject *s = subject_of(c);

	CHECK(s->ended == 0);
	*(stream == CALL_STDOUT ? &s->out : &s->err) += data.n;
	if (s->takes)
		link_call_taken(c, stream, data.n);
	if (s->drops_at_output)
		link_call_drop(c);
}

static void on_denied(struct link_call *c, struct str fields)
{
	struct field f;

	CHECK(field_next(&fields, &f) == 1 && f.tag == TAG_NAME && str_is(f.value, "evil.test"));
	subject_of(c)->denied++;
	if (subject_of(c)->drops_at_output)
		link_call_drop(c);
}

static void on_room(struct link_call *c, size_t bytes)
{
	subject_of(c)->room = bytes;
}

static void on_ended(struct link_call *c, const struct call_result *r, const struct err *why)
{
	struct subject *s = subject_of(c);

	CHECK((r == NULL) == (why != NULL));
	s->ended++;
	s->over = true;
	s->failed = why != NULL;
	if (why)
		s->why = *why;
	else
		s->result = *r;
	if (s->frees_link_at_end) {
		link_free(link_);
		link_ = NULL;
	}
}

static const struct link_call_ops ops = {
	.started = on_started,
	.output = on_output,
	.denied = on_denied,
	.room = on_room,
	.ended = on_ended,
};

static uint32_t number(const struct subject *s)
{
	return s->call.channel.number;
}

static void call(struct subject *s, const struct call_spec *spec)
{
	CHECK(link_call(link_, &s->call, spec, &ops) == 0);
}

static void say_output(const struct subject *s, uint8_t type, size_t n)
{
	static char zeros[LIMIT_FRAME_BODY];

	say_raw(type, number(s), (struct str){ zeros, n });
}

static void a_call_is_asked_for_with_all_its_fields(void)
{
	const char *argv[] = { "sh", "-c", NULL }, *env[] = { "A=1", NULL };
	struct call_spec spec = { .argv = argv,
				  .env = env,
				  .cwd = "/w",
				  .user = "me",
				  .call_id = "mine",
				  .timeout_ms = 5,
				  .idempotent = true,
				  .retain_bytes = 9,
				  .window = 1000 };
	struct subject s = { 0 };
	struct frame f;
	char text[32];

	set_up(3);
	call(&s, &spec);
	f = hear(MSG_C_EXEC);
	CHECK(f.chan == number(&s) && s.call.detached);
	CHECK(frame_text(&f, TAG_ARG, text, sizeof text) && strcmp(text, "sh") == 0);
	CHECK(frame_text(&f, TAG_ENV, text, sizeof text) && strcmp(text, "A=1") == 0);
	CHECK(frame_text(&f, TAG_CALL_ID, text, sizeof text) && strcmp(text, "mine") == 0);
	CHECK(frame_number(&f, TAG_WINDOW, 0) == 1000 && frame_number(&f, TAG_RETAIN, 0) == 9);
	CHECK(frame_number(&f, TAG_IDEMPOTENT, 0) == 1 && frame_number(&f, TAG_TIMEOUT_MS, 0) == 5);
	tear_down();
}

static void a_refusal_is_told_when_it_happens(void)
{
	struct subject s = { 0 }, leaving = { .drops_at_output = true };

	set_up(3);
	call(&s, &(struct call_spec){ 0 });
	call(&leaving, &(struct call_spec){ 0 });
	say(MSG_C_DENIED, number(&s), 0, 0, TAG_NAME, "evil.test");
	say(MSG_C_DENIED, number(&leaving), 0, 0, TAG_NAME, "evil.test");
	turn();
	CHECK(s.denied == 1 && s.ended == 0);
	CHECK(leaving.denied == 1 && !leaving.call.channel.link);
	link_call_drop(&s.call);
	tear_down();
}

static void nobody_need_hear_of_refusals(void)
{
	static const struct link_call_ops deaf = { .output = on_output, .ended = on_ended };
	struct subject s = { 0 };

	set_up(3);
	CHECK(link_call(link_, &s.call, &(struct call_spec){ 0 }, &deaf) == 0);
	say(MSG_C_DENIED, number(&s), 0, 0, TAG_NAME, "evil.test");
	turn();
	CHECK(s.denied == 0 && s.ended == 0 && closed_times == 0);
	link_call_drop(&s.call);
	tear_down();
}

static void a_call_runs_from_its_start_to_its_end(void)
{
	struct subject s = { .takes = true };

	set_up(3);
	call(&s, &(struct call_spec){ 0 });
	say(MSG_C_STARTED, number(&s), TAG_CALL, 12, 0, NULL);
	say_output(&s, MSG_C_STDOUT, 10);
	say_output(&s, MSG_C_STDERR, 3);
	say(MSG_C_EXIT, number(&s), TAG_STATUS, 7 << 8, TAG_REASON, "exit");
	say_output(&s, MSG_C_STDOUT, 10);
	turn();
	CHECK(s.started == 1 && s.how.call == 12 && s.out == 10 && s.err == 3);
	CHECK(s.ended == 1 && !s.failed && s.result.code == 7 && closed_times == 0);
	CHECK(link_call_write(&s.call, STR("late")) == 0);
	link_call_taken(&s.call, CALL_STDOUT, 99);
	link_call_signal(&s.call, 9);
	link_call_drop(&s.call);
	tear_down();
}

static void results_have_the_codes_of_a_shell(void)
{
	static const struct {
		uint64_t status;
		const char *reason;
		int code;
	} ends[] = {
		{ 0, "exit", 0 },      { 3 << 8, "exit", 3 },	 { 9, "signal", 137 },
		{ 9, "timeout", 124 }, { UINT64_MAX, "?", 255 },
	};

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		struct subject s = { 0 };

		set_up(3);
		call(&s, &(struct call_spec){ 0 });
		say(MSG_C_EXIT, number(&s), TAG_STATUS, ends[i].status, TAG_REASON, ends[i].reason);
		turn_until(&s.over);
		CHECK(s.result.code == ends[i].code);
		tear_down();
	}
}

static void credit_is_given_back_as_output_is_taken(void)
{
	struct subject s = { 0 };
	struct frame f;

	set_up(3);
	call(&s, &(struct call_spec){ .window = 1000 });
	(void)hear(MSG_C_EXEC);
	say_output(&s, MSG_C_STDOUT, 600);
	say_output(&s, MSG_C_STDERR, 400);
	turn();
	CHECK(s.out == 600 && s.err == 400);
	link_call_taken(&s.call, CALL_STDOUT, 200);
	CHECK(hears_nothing());
	link_call_taken(&s.call, CALL_STDERR, 100);
	f = hear(MSG_C_CREDIT);
	CHECK(f.chan == number(&s) && frame_number(&f, TAG_BYTES, 0) == 300);
	say_output(&s, MSG_C_STDOUT, 300);
	turn();
	CHECK(s.out == 900 && closed_times == 0);
	/* The link never returns more credit than it received. */
	link_call_taken(&s.call, CALL_STDOUT, 1 << 30);
	f = hear(MSG_C_CREDIT);
	CHECK(frame_number(&f, TAG_BYTES, 0) == 1000);
	tear_down();
}

static void more_output_than_the_window_ends_the_link(void)
{
	struct subject s = { 0 }, other = { 0 };

	set_up(3);
	call(&s, &(struct call_spec){ .window = 1000 });
	call(&other, &(struct call_spec){ 0 });
	say_output(&s, MSG_C_STDOUT, 1000);
	turn();
	CHECK(s.out == 1000 && s.ended == 0);
	say_output(&s, MSG_C_STDOUT, 1);
	turn();
	CHECK(s.out == 1000 && s.ended == 1 && other.ended == 1 && closed_times == 1);
	CHECK_STR(s.why.code, "warden.protocol");
	tear_down();
}

static void output_that_was_not_asked_for_ends_the_link(void)
{
	struct subject s = { 0 };

	set_up(3);
	call(&s, &(struct call_spec){ .detached = true, .window = LINK_NO_OUTPUT });
	say_output(&s, MSG_C_STDOUT, 1);
	turn();
	CHECK(s.out == 0 && s.failed && closed_times == 1);
	tear_down();
}

static void a_warden_of_version_2_is_not_read_while_output_waits(void)
{
	struct subject s = { 0 }, other = { 0 };

	set_up(0);
	call(&s, &(struct call_spec){ .window = 1000 });
	call(&other, &(struct call_spec){ 0 });
	say_output(&s, MSG_C_STDOUT, 900);
	say_output(&s, MSG_C_STDOUT, 900);
	say_output(&s, MSG_C_STDOUT, 900);
	say(MSG_C_EXIT, number(&other), TAG_STATUS, 0, 0, NULL);
	turn();
	CHECK(link_version(link_) == 2 && s.out == 1800 && !other.ended);
	link_call_taken(&s.call, CALL_STDOUT, 1000);
	turn();
	CHECK(s.out == 2700 && !other.ended);
	link_call_drop(&s.call);
	turn();
	CHECK(other.ended == 1 && closed_times == 0);
	(void)hear(MSG_C_EXEC);
	(void)hear(MSG_C_EXEC);
	CHECK(hear(MSG_C_SIGNAL).chan != 0 && hears_nothing());
	tear_down();
}

static void stdin_is_taken_as_far_as_there_is_room(void)
{
	static char zeros[LIMIT_FRAME_DATA];
	struct str data = { zeros, sizeof zeros };
	struct subject s = { 0 };
	size_t sent = 0;

	set_up(3);
	call(&s, &(struct call_spec){ 0 });
	(void)hear(MSG_C_EXEC);
	while (sent < LIMIT_STDIN_WINDOW) {
		size_t n = link_call_write(&s.call, data);

		CHECK(n == sizeof zeros && hear(MSG_C_STDIN).body.n == n);
		sent += n;
	}
	CHECK(sent == LIMIT_STDIN_WINDOW && link_call_write(&s.call, data) == 0);
	say(MSG_C_CREDIT, number(&s), TAG_BYTES, 10, 0, NULL);
	turn();
	CHECK(s.room == 10 && link_call_write(&s.call, data) == 10);
	/* The link ignores credit beyond the window. */
	say(MSG_C_CREDIT, number(&s), TAG_BYTES, UINT64_MAX, 0, NULL);
	say(MSG_C_CREDIT, number(&s), TAG_BYTES, UINT64_MAX, 0, NULL);
	turn();
	CHECK(s.room == LIMIT_STDIN_WINDOW);
	CHECK(hear(MSG_C_STDIN).body.n == 10);
	link_call_eof(&s.call);
	link_call_eof(&s.call);
	CHECK(hear(MSG_C_STDIN_EOF).chan == number(&s) && hears_nothing());
	CHECK(link_call_write(&s.call, data) == 0);
	tear_down();
}

static void a_warden_that_does_not_read_fills_no_buffer(void)
{
	static char zeros[LIMIT_STDIN_WINDOW];
	struct str data = { zeros, sizeof zeros };
	static struct subject s[64];
	size_t sent = 0;

	set_up(3);
	for (int i = 0; i < 64; i++)
		call(&s[i], &(struct call_spec){ 0 });
	for (int i = 0; i < 64; i++)
		sent += link_call_write(&s[i].call, data);
	CHECK(sent < 2 * 1024 * 1024 && link_backlog(link_) < LIMIT_CONN_HIGH + 128 * 1024);
	CHECK(link_call_write(&s[63].call, data) == 0);
	/* The warden reads again: the link tells the caller that could not write. */
	for (bool more = true; more;) {
		static char sink[1 << 20];

		while (recv(peer, sink, sizeof sink, MSG_DONTWAIT) > 0)
			;
		turn();
		more = link_backlog(link_) > 0;
	}
	CHECK(s[63].room > 0);
	tear_down();
}

/* The same for a caller that never offers more than the room. */
static void a_writer_within_its_room_hears_when_the_link_can_send_again(void)
{
	static char zeros[LIMIT_STDIN_WINDOW];
	static struct subject s[8];
	static char sink[1 << 20];

	set_up(3);
	for (int i = 0; i < 8; i++) {
		struct str data = { zeros, 0 };

		call(&s[i], &(struct call_spec){ 0 });
		data.n = link_call_room(&s[i].call);
		(void)link_call_write(&s[i].call, data);
	}
	CHECK(link_call_room(&s[7].call) == 0);
	while (link_backlog(link_) > 0) {
		while (recv(peer, sink, sizeof sink, MSG_DONTWAIT) > 0)
			;
		turn();
	}
	CHECK(s[7].room > 0 && link_call_room(&s[7].call) == s[7].room);
	tear_down();
}

static void a_warden_of_version_2_is_asked_for_no_window(void)
{
	struct subject s = { 0 };
	struct frame f;

	set_up(2);
	call(&s, &(struct call_spec){ 0 });
	f = hear(MSG_C_EXEC);
	CHECK(frame_number(&f, TAG_WINDOW, 7) == 7);
	tear_down();
}

static void a_call_that_does_not_start_is_dropped(void)
{
	struct subject s = { 0 };

	set_up(3);
	call(&s, &(struct call_spec){ .start_ms = 20 });
	(void)hear(MSG_C_EXEC);
	turn_until(&s.over);
	CHECK(s.why.kind == ERR_TIMEOUT && hear(MSG_C_DROP).chan == number(&s));
	tear_down();

	s = (struct subject){ 0 };
	set_up(3);
	call(&s, &(struct call_spec){ .start_ms = 300 });
	say_plain(MSG_C_STARTED, number(&s));
	say_plain(MSG_C_STARTED, number(&s));
	turn();
	CHECK(wait_pause(&waiter, 320 * NS_PER_MS) == 0);
	CHECK(s.started == 1 && !s.ended);
	tear_down();
}

static void a_dropped_call_hears_nothing(void)
{
	struct subject s = { .drops_at_output = true };

	set_up(3);
	call(&s, &(struct call_spec){ 0 });
	(void)hear(MSG_C_EXEC);
	say_output(&s, MSG_C_STDOUT, 10);
	say_output(&s, MSG_C_STDOUT, 10);
	say_error(number(&s), "late");
	turn();
	CHECK(s.out == 10 && s.ended == 0 && hear(MSG_C_DROP).chan == number(&s));
	tear_down();
}

static void a_call_is_joined(void)
{
	struct subject s = { 0 }, writer = { 0 }, heir = { 0 };
	struct frame f;
	auto_done(buf_done) struct buf b = BUF_INIT(1000);

	set_up(3);
	CHECK(link_attach(link_, &s.call, &(struct call_attach){ .call = 4, .offset = 9 }, &ops) ==
	      0);
	f = hear(MSG_C_ATTACH);
	CHECK(frame_number(&f, TAG_CALL, 0) == 4 && frame_number(&f, TAG_OFFSET, 0) == 9);
	CHECK(frame_number(&f, TAG_STDIN, 7) == 7 &&
	      frame_number(&f, TAG_WINDOW, 0) == LINK_WINDOW);
	CHECK(link_call_write(&s.call, STR("x")) == 0);
	CHECK(link_attach(link_, &writer.call,
			  &(struct call_attach){ .call_id = "it", .writes = true }, &ops) == 0);
	f = hear(MSG_C_ATTACH);
	CHECK(frame_number(&f, TAG_STDIN, 0) == 1);
	CHECK(field_put_u64(&b, TAG_EXISTING, 1) == 0 && field_put_u64(&b, TAG_DROPPED, 3) == 0);
	CHECK(field_put_u64(&b, TAG_STDIN, 2) == 0);
	say_raw(MSG_C_STARTED, number(&writer), buf_str(&b));
	turn();
	CHECK(writer.how.existing && writer.how.dropped == 3);
	CHECK(link_call_write(&writer.call, STR("abc")) == 2);
	CHECK(link_attach(link_, &heir.call,
			  &(struct call_attach){ .call = 4, .writes = true, .takes = true },
			  &ops) == 0);
	(void)hear(MSG_C_STDIN);
	f = hear(MSG_C_ATTACH);
	CHECK(frame_number(&f, TAG_STDIN, 0) == 2);
	tear_down();
}

static void an_error_says_whether_the_command_exists(void)
{
	struct subject s = { 0 };

	set_up(3);
	call(&s, &(struct call_spec){ 0 });
	say(MSG_C_ERROR, number(&s), TAG_STAGE, STAGE_EXEC, TAG_KIND, "not_found");
	turn();
	CHECK(s.failed && s.why.kind == ERR_NOT_FOUND);
	CHECK_STR(s.why.code, "exec.failed");
	tear_down();
}

static void an_end_may_free_the_link(void)
{
	struct subject s = { .frees_link_at_end = true }, other = { 0 };

	set_up(3);
	call(&s, &(struct call_spec){ 0 });
	call(&other, &(struct call_spec){ 0 });
	say_plain(MSG_C_EXIT, number(&s));
	say_plain(MSG_C_EXIT, number(&other));
	turn();
	CHECK(s.ended == 1 && other.ended == 0 && !link_);
	link_call_drop(&other.call);
	tear_down();
}

static void the_end_of_the_connection_ends_every_call(void)
{
	struct subject s[3] = { 0 };

	set_up(3);
	for (int i = 0; i < 3; i++)
		call(&s[i], &(struct call_spec){ 0 });
	say_plain(MSG_C_STARTED, number(&s[0]));
	say_output(&s[0], MSG_C_STDOUT, 5);
	fd_close(&peer);
	turn();
	CHECK(s[0].out == 5);
	for (int i = 0; i < 3; i++)
		CHECK(s[i].ended == 1 && s[i].failed);
	CHECK(closed_times == 1);
	tear_down();
}

T_MAIN(T(a_call_is_asked_for_with_all_its_fields), T(a_call_runs_from_its_start_to_its_end),
       T(a_refusal_is_told_when_it_happens), T(nobody_need_hear_of_refusals),
       T(results_have_the_codes_of_a_shell), T(credit_is_given_back_as_output_is_taken),
       T(more_output_than_the_window_ends_the_link), T(output_that_was_not_asked_for_ends_the_link),
       T(a_warden_of_version_2_is_not_read_while_output_waits),
       T(stdin_is_taken_as_far_as_there_is_room), T(a_warden_that_does_not_read_fills_no_buffer),
       T(a_writer_within_its_room_hears_when_the_link_can_send_again),
       T(a_warden_of_version_2_is_asked_for_no_window), T(a_call_that_does_not_start_is_dropped),
       T(a_dropped_call_hears_nothing), T(a_call_is_joined),
       T(an_error_says_whether_the_command_exists), T(an_end_may_free_the_link),
       T(the_end_of_the_connection_ends_every_call))
