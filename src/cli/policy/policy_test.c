/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests two-word commands and the policy commands. One run per test, because options keep their
 * values.
 */
#include "cli/cli_test.h"
#include "cli/commands.h"

const struct cmd *const commands[] = { &cmd_policy_check,
				       &cmd_policy_explain,
				       &cmd_policy_show,
				       &cmd_help,
				       &cmd_version,
				       &cmd_complete,
				       NULL };

static void a_group_alone_lists_its_commands(void)
{
	struct ran *r = cay("policy", NULL);

	CHECK(r->code == 0);
	CHECK_HAS(r->out, "Usage: cay policy COMMAND\n");
	CHECK_HAS(r->out, "  policy check    ");
	CHECK_LACKS(r->out, "version");
	CHECK_HAS(cay("policy", "--help", NULL)->out, "policy explain");
	CHECK_HAS(cay("help", "policy", NULL)->out, "policy show");
}

static void a_slip_in_the_second_word_is_understood(void)
{
	struct ran *r = cay("policy", "chekc", "x", NULL);

	CHECK(r->code == 2);
	CHECK_HAS(r->err, "cay: no command 'policy chekc'; did you mean 'policy check'?\n");
	CHECK_HAS(r->err, "hint: cay policy --help lists the commands\n");
	CHECK_HAS(cay("polcy", NULL)->err, "no command 'polcy'");
	CHECK(cay("help", "policy", "nonsense", NULL)->code == 2);
	CHECK(cay("help", "version", "x", NULL)->code == 2);
}

static void help_knows_commands_of_two_words(void)
{
	CHECK_HAS(cay("policy", "check", "--help", NULL)->out,
		  "Usage: cay policy check FILE|PRESET\n");
	CHECK_HAS(cay("help", "policy", "explain", NULL)->out, "Usage: cay policy explain FILE");
	CHECK_HAS(cay("--help", NULL)->out, "Network   policy check    ");
	CHECK_HAS(cay("help", "--man", NULL)->out, ".SS cay policy explain FILE|PRESET");
}

static void completion_goes_word_by_word(void)
{
	CHECK_STR(cay("__complete", "pol", NULL)->out,
		  "policy\tCheck a network policy and list its rules\n");
	CHECK_STR(cay("__complete", "policy", "sh", NULL)->out,
		  "show\tList the presets, or print one, or the policy of a sandbox\n");
	CHECK_HAS(cay("__complete", "policy", "", NULL)->out, "explain\t");
	CHECK_STR(cay("__complete", "policy", "show", "cod", NULL)->out, "coding\t\n");
	CHECK_STR(cay("__complete", "policy", "check", "", NULL)->out, ":file\n");
	CHECK_STR(cay("__complete", "policy", "explain", "--prot", NULL)->out,
		  "--proto\tWhat the client speaks (default: what the port is for)\n");
	CHECK_HAS(cay("__complete", "policy", "explain", "x", "--proto", "t", NULL)->out, "tls\t");
	CHECK_STR(cay("__complete", "nosuch", "", NULL)->out, "");
}

static void a_preset_is_listed(void)
{
	struct ran *r = cay("policy", "check", "coding", NULL);

	CHECK(r->code == 0);
	CHECK_HAS(r->out, "coding/pypi ");
	CHECK_HAS(r->out, "default ");
	CHECK_STR(r->err, "");
}

static void wide_rules_are_warned_about(void)
{
	CHECK_HAS(cay("policy", "check", "open", NULL)->err,
		  "warning: preset open: rule 'open/all-names' allows '**': anyone can own a name "
		  "there and receive data\n");
}

static void an_unknown_preset_is_5(void)
{
	struct ran *r = cay("policy", "check", "codign", NULL);

	CHECK(r->code == 5);
	CHECK_HAS(r->err, "cay: no preset 'codign'; did you mean 'coding'?\n");
}

static void show_prints_what_was_embedded(void)
{
	CHECK_STR(cay("policy", "show", NULL)->out, "none\ncoding\nresearch\nopen\n");
	CHECK_HAS(cay("policy", "show", "research", NULL)->out, "  rate_up: 1M/s\n");
	CHECK(cay("policy", "show", "x", NULL)->code == 5);
}

static void what_is_allowed_is_0(void)
{
	struct ran *r = cay("policy", "explain", "coding", "--host", "PyPI.org.", NULL);

	CHECK(r->code == 0);
	CHECK_STR(r->out, "allow    PyPI.org. port 443, tls\n"
			  "rule     coding/pypi (preset coding)\n"
			  "because  a rule says so\n");
}

static void what_is_denied_is_6_and_says_how(void)
{
	struct ran *r = cay("policy", "explain", "coding", "--host", "evil.test", NULL);

	CHECK(r->code == 6);
	CHECK_STR(r->out, "deny     evil.test port 443, tls\n"
			  "rule     default\n"
			  "because  no rule matches\n"
			  "add      - {id: allow-evil.test, hosts: [evil.test], ports: [443]}\n");
}

static void what_depends_is_1(void)
{
	struct ran *r = cay("policy", "explain", "none", "--host", "db.test", "--port", "5432",
			    "--allow", "db.test:5432", "--deny", "10.0.0.0/8", NULL);

	CHECK(r->code == 1);
	CHECK_HAS(r->out, "on       the address that the name resolves to (--address)\n");
}

static void json_has_it_all(void)
{
	struct ran *r = cay("policy", "explain", "coding", "--host", "github.com", "--sni",
			    "evil.test", "--json", NULL);

	CHECK(r->code == 6);
	CHECK_STR(r->out,
		  "{\"verdict\":\"deny\",\"reason\":\"sni_mismatch\",\"rule\":\"coding/github\","
		  "\"origin\":\"preset coding\",\"host\":\"github.com\",\"port\":443,"
		  "\"protocol\":\"tls\",\"needs\":null,\"add\":\"- {id: allow-github.com, "
		  "hosts: [github.com], ports: [443], tls: {mismatch: true}}\"}\n");
}

static void spellings_are_denied(void)
{
	struct ran *r = cay("policy", "explain", "open", "--host", "0x7f.1", NULL);

	CHECK(r->code == 6);
	CHECK_HAS(r->err, "'0x7f.1' is an unusual spelling of an address");
}

static void methods_make_it_http(void)
{
	struct ran *r = cay("policy", "explain", "coding", "--host", "deb.debian.org", "--port",
			    "80", "--method", "POST", NULL);

	CHECK(r->code == 6);
	CHECK_HAS(r->out, "deb.debian.org port 80, http\n");
}

static void what_is_missing_is_said(void)
{
	CHECK(cay("policy", "explain", "coding", NULL)->code == 2);
	CHECK_HAS(cay("policy", "explain", NULL)->err,
		  "cay policy explain: missing FILE or PRESET");
	CHECK_HAS(cay("policy", "explain", "coding", "--host", "a.b", "--proto", "x", NULL)->err,
		  "--proto 'x' is none of tls, http, ssh, tcp");
}

T_MAIN(T(a_group_alone_lists_its_commands), T(a_slip_in_the_second_word_is_understood),
       T(help_knows_commands_of_two_words), T(completion_goes_word_by_word), T(a_preset_is_listed),
       T(wide_rules_are_warned_about), T(an_unknown_preset_is_5), T(show_prints_what_was_embedded),
       T(what_is_allowed_is_0), T(what_is_denied_is_6_and_says_how), T(what_depends_is_1),
       T(json_has_it_all), T(spellings_are_denied), T(methods_make_it_http),
       T(what_is_missing_is_said))
