/* SPDX-License-Identifier: Apache-2.0 */
/* Links and questions against a scripted warden, in every order of frames that it can choose. */
#include "link/link_fixture.h"

struct question {
	struct link_ask ask;
	int answers, done;
	int more; /* answers before the last one */
	bool over, frees_link, drops_itself, asks_again;
	int result;
	struct err why;
};

static int on_answer(struct link_ask *a, const struct frame *f)
{
	struct question *q = container_of(a, struct question, ask);

	q->answers++;
	if (q->frees_link) {
		link_free(link_);
		link_ = NULL;
		return 0;
	}
	if (q->drops_itself) {
		link_ask_drop(a);
		return 1;
	}
	if (f->type == MSG_C_PONG)
		return -1;
	return q->more-- > 0;
}

static void on_done(struct link_ask *a, const struct err *why)
{
	struct question *q = container_of(a, struct question, ask);

	q->done++;
	q->over = true;
	q->result = why ? -1 : 0;
	if (why)
		q->why = *why;
	if (q->frees_link && link_) {
		link_free(link_);
		link_ = NULL;
	}
	if (q->asks_again)
		CHECK(link_ask(link_, a, MSG_C_INFO, STR_NONE, 0) == -ENOTCONN);
}

static void ask(struct question *q, uint64_t timeout_ms)
{
	q->ask.answer = on_answer;
	q->ask.done = on_done;
	CHECK(link_ask(link_, &q->ask, MSG_C_INFO, STR_NONE, timeout_ms) == 0);
}

static uint32_t number(const struct question *q)
{
	return q->ask.channel.number;
}

static void hello_goes_with_the_first_request(void)
{
	struct question q = { 0 };
	struct frame f;

	set_up(0);
	CHECK(hears_nothing());
	ask(&q, 0);
	f = hear_any();
	CHECK(f.type == MSG_C_HELLO && f.chan == 0);
	CHECK(frame_number(&f, TAG_VERSION, 0) == 2 && frame_number(&f, TAG_NEWEST, 0) == 3);
	CHECK(hear_any().type == MSG_C_INFO);
	say_hello(3);
	say_plain(MSG_C_STATE, number(&q));
	turn_until(&q.over);
	CHECK(q.done == 1 && q.result == 0 && link_version(link_) == 3);
	tear_down();
}

static void a_warden_without_hello_is_of_version_2(void)
{
	struct question q = { 0 };

	set_up(0);
	ask(&q, 0);
	say_plain(MSG_C_STATE, number(&q));
	turn_until(&q.over);
	CHECK(q.result == 0 && link_version(link_) == 2);
	tear_down();
}

static void an_unknown_version_ends_the_link(void)
{
	static const uint64_t versions[] = { 0, 1, 4, UINT64_MAX };

	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		struct question q = { 0 };

		closed_times = 0;
		set_up(0);
		ask(&q, 0);
		say(MSG_C_HELLO, 0, TAG_VERSION, versions[i], 0, NULL);
		turn_until(&q.over);
		CHECK(q.result == -1 && closed_times == 1);
		CHECK_STR(q.why.code, "warden.protocol");
		tear_down();
	}
}

static void a_refused_hello_is_told_to_all(void)
{
	struct question a = { 0 }, b = { 0 };

	set_up(0);
	ask(&a, 0);
	ask(&b, 0);
	say_error(0, "another version");
	turn();
	CHECK(a.done == 1 && b.done == 1 && closed_times == 1);
	CHECK_STR(a.why.msg, "another version");
	CHECK_STR(closed_why.msg, "another version");
	tear_down();
}

static void answers_go_to_their_questions(void)
{
	struct question a = { .more = 2 }, b = { 0 };

	set_up(3);
	ask(&a, 0);
	ask(&b, 0);
	CHECK(number(&a) != number(&b));
	say_plain(MSG_C_STATE, number(&b));
	say_plain(MSG_C_PROCESS, number(&a));
	say_plain(MSG_C_PROCESS, number(&a));
	turn();
	CHECK(b.done == 1 && a.answers == 2 && a.done == 0);
	say_plain(MSG_C_END, number(&a));
	turn();
	CHECK(a.done == 1 && a.result == 0 && a.answers == 3);
	tear_down();
}

static void an_answer_after_the_end_finds_nobody(void)
{
	struct question q = { 0 };
	uint32_t n;

	set_up(3);
	ask(&q, 0);
	n = number(&q);
	say_plain(MSG_C_STATE, n);
	say_plain(MSG_C_STATE, n);
	say_error(n, "late");
	say_plain(MSG_C_STATE, 12345);
	turn();
	CHECK(q.done == 1 && q.answers == 1 && closed_times == 0);
	tear_down();
}

static void a_refusal_is_an_error_and_nonsense_too(void)
{
	struct question a = { 0 }, b = { 0 };

	set_up(3);
	ask(&a, 0);
	ask(&b, 0);
	say_error(number(&a), "no");
	say_plain(MSG_C_PONG, number(&b));
	turn();
	CHECK(a.result == -1 && a.why.sys == 2 && a.why.kind != ERR_NONE);
	CHECK_STR(a.why.msg, "no");
	CHECK(b.result == -1);
	CHECK_STR(b.why.code, "warden.protocol");
	CHECK(closed_times == 0);
	tear_down();
}

static void the_end_of_the_connection_is_told_once_to_each_and_last_to_the_owner(void)
{
	static struct question q[200];

	set_up(3);
	for (int i = 0; i < 200; i++)
		ask(&q[i], 60000);
	q[7].asks_again = true;
	fd_close(&peer);
	turn();
	for (int i = 0; i < 200; i++)
		CHECK(q[i].done == 1 && q[i].result == -1);
	CHECK(closed_times == 1);
	CHECK_STR(q[0].why.code, "sandbox.gone");
	CHECK(link_tell(link_, MSG_C_KEEP, STR_NONE) == -ENOTCONN);
	tear_down();
}

static void malformed_bytes_end_the_link(void)
{
	struct question q = { 0 };
	static const char bad[64] = { 1, 0, 0, 0, 9, 0, 7, 7 };

	set_up(3);
	ask(&q, 0);
	CHECK(write(peer, bad, sizeof bad) == sizeof bad);
	turn();
	CHECK(q.done == 1 && closed_times == 1);
	CHECK_STR(q.why.code, "warden.protocol");
	tear_down();
}

static void a_deadline_ends_its_question_only(void)
{
	struct question a = { 0 }, b = { 0 };
	uint32_t n;

	set_up(3);
	ask(&a, 20);
	ask(&b, 5000);
	n = number(&a);
	turn_until(&a.over);
	CHECK(a.result == -1 && a.why.kind == ERR_TIMEOUT && b.done == 0);
	say_plain(MSG_C_STATE, n);
	say_plain(MSG_C_STATE, number(&b));
	turn();
	CHECK(a.done == 1 && a.answers == 0 && b.done == 1 && b.result == 0);
	tear_down();
}

static void callbacks_may_free_the_link(void)
{
	struct question a = { .frees_link = true }, b = { 0 };

	set_up(3);
	ask(&a, 1000);
	ask(&b, 1000);
	say_plain(MSG_C_STATE, number(&a));
	say_plain(MSG_C_STATE, number(&b));
	turn();
	CHECK(a.answers == 1 && a.done == 0 && b.done == 0 && !link_);
	tear_down();

	a = b = (struct question){ .frees_link = true };
	set_up(3);
	ask(&a, 1000);
	ask(&b, 1000);
	fd_close(&peer);
	turn();
	CHECK(a.done + b.done == 1 && closed_times == 0);
	tear_down();

	free_when_closed = true;
	set_up(3);
	fd_close(&peer);
	turn();
	CHECK(closed_times == 1 && !link_);
	tear_down();
}

static void a_dropped_question_hears_nothing(void)
{
	struct question a = { .drops_itself = true }, b = { 0 };
	uint32_t n;

	set_up(3);
	ask(&a, 300);
	ask(&b, 300);
	n = number(&b);
	link_ask_drop(&b.ask);
	link_ask_drop(&b.ask);
	say_plain(MSG_C_STATE, number(&a));
	say_plain(MSG_C_STATE, n);
	turn();
	CHECK(wait_pause(&waiter, 320 * NS_PER_MS) == 0);
	CHECK(a.answers == 1 && a.done == 0 && b.answers == 0 && b.done == 0);
	tear_down();
}

static void ready_is_told(void)
{
	set_up(0);
	CHECK(link_tell(link_, MSG_C_BUILD, STR_NONE) == 0);
	CHECK(hear(MSG_C_BUILD).chan == 0);
	say_hello(3);
	say(MSG_C_READY, 0, TAG_INIT_PID, 77, 0, NULL);
	turn();
	CHECK(ready_times == 1 && closed_times == 0);
	tear_down();
}

struct dialed {
	struct link_dial dial;
	int done, fd;
};

static void on_dialed(struct link_dial *d, int fd, const struct err *why)
{
	struct dialed *to = container_of(d, struct dialed, dial);

	CHECK((fd < 0) == (why != NULL));
	to->done++;
	to->fd = fd;
}

static void send_fds(uint8_t type, uint32_t chan, int n)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * 4)];
		struct cmsghdr align;
	} ctl = { 0 };
	uint8_t head[FRAME_HEADER] = { [4] = type, [5] = (uint8_t)n, [8] = (uint8_t)chan };
	struct iovec iov = { head, sizeof head };
	struct msghdr m = { .msg_iov = &iov,
			    .msg_iovlen = 1,
			    .msg_control = &ctl,
			    .msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)n) };

	ctl.align = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
				      .cmsg_type = SCM_RIGHTS,
				      .cmsg_len = CMSG_LEN(sizeof(int) * (size_t)n) };
	for (int i = 0; i < n; i++)
		((int *)(void *)CMSG_DATA(&ctl.align))[i] = STDERR_FILENO;
	CHECK(sendmsg(peer, &m, 0) == (ssize_t)sizeof head);
}

static void descriptors_are_taken_or_closed(void)
{
	struct dialed d = { .dial.done = on_dialed }, two = d, none = d;
	struct question q = { 0 };

	set_up(3);
	CHECK(link_dial(link_, &d.dial, 80, 1000) == 0);
	CHECK(link_dial(link_, &two.dial, 80, 1000) == 0);
	CHECK(link_dial(link_, &none.dial, 80, 1000) == 0);
	ask(&q, 0);
	send_fds(MSG_C_DIALED, d.dial.channel.number, 1);
	send_fds(MSG_C_DIALED, two.dial.channel.number, 2);
	say_plain(MSG_C_DIALED, none.dial.channel.number);
	send_fds(MSG_C_STATE, number(&q), 3);
	send_fds(MSG_C_STATE, 99, 1);
	send_fds(MSG_C_READY + 1, 0, 1);
	turn();
	CHECK(d.done == 1 && d.fd >= 0 && two.done == 1 && two.fd < 0 && none.done == 1);
	CHECK(q.done == 1);
	(void)close(d.fd);
	tear_down();
}

static void a_link_is_given_and_adopted(void)
{
	struct question q = { 0 };
	struct link_given given;
	struct err e = { 0 };

	set_up(3);
	ask(&q, 0);
	CHECK(link_give(link_, &given, &e) == -1 && e.kind == ERR_CONFLICT);
	say_plain(MSG_C_STATE, number(&q));
	turn();
	(void)hear(MSG_C_INFO);
	/* Half a frame has arrived: the link cannot be given to another process. */
	CHECK(write(peer, "\1", 1) == 1);
	turn();
	CHECK(link_give(link_, &given, &e) == -1 && e.kind == ERR_CONFLICT);
	CHECK(write(peer, "\0\0\0\377\0\0\0\0\0\0\0x", 12) == 12);
	turn();
	CHECK(link_give(link_, &given, &e) == 0);
	CHECK(given.version == 3 && given.channel == number(&q));
	CHECK(link_adopt(&loop, given, "abc", &fixture_ops, NULL, &link_, &e) == 0);
	q = (struct question){ 0 };
	ask(&q, 0);
	CHECK(number(&q) == given.channel + 1);
	CHECK(hear_any().type == MSG_C_INFO);
	say_plain(MSG_C_STATE, number(&q));
	turn();
	CHECK(q.done == 1 && q.result == 0);
	tear_down();
}

T_MAIN(T(hello_goes_with_the_first_request), T(a_warden_without_hello_is_of_version_2),
       T(an_unknown_version_ends_the_link), T(a_refused_hello_is_told_to_all),
       T(answers_go_to_their_questions), T(an_answer_after_the_end_finds_nobody),
       T(a_refusal_is_an_error_and_nonsense_too),
       T(the_end_of_the_connection_is_told_once_to_each_and_last_to_the_owner),
       T(malformed_bytes_end_the_link), T(a_deadline_ends_its_question_only),
       T(callbacks_may_free_the_link), T(a_dropped_question_hears_nothing), T(ready_is_told),
       T(descriptors_are_taken_or_closed), T(a_link_is_given_and_adopted))
