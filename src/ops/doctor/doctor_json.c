/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/doctor/doctor.h"
#include "wire/json_write.h"

const char *const check_state_names[] = {
	[CHECK_OK] = "ok",
	[CHECK_NOTE] = "note",
	[CHECK_MISSING] = "missing",
};

static void json_check(struct json *j, const struct check *c)
{
	json_obj(j);
	json_put_text(j, "name", c->name);
	json_put_text(j, "group", c->group);
	json_put_text(j, "state", check_state_names[c->state]);
	json_put_text(j, "finding", c->finding);
	json_put_text(j, "fix", c->fix);
	json_end(j);
}

static void json_level(struct json *j, const struct level *v)
{
	json_obj(j);
	json_put_text(j, "driver", v->driver);
	json_put_text(j, "profile", v->profile);
	json_put_text(j, "mode", v->mode);
	json_put_text(j, "level", v->level);
	json_put_text(j, "sentence", v->sentence);
	json_end(j);
}

void json_doctor(struct json *j, const struct checks *l, const struct level *levels, int n)
{
	json_obj(j);
	json_put_arr(j, "checks");
	for (int i = 0; i < l->n; i++)
		json_check(j, &l->items[i]);
	json_end(j);
	json_put_arr(j, "drivers");
	for (int i = 0; i < n; i++)
		json_level(j, &levels[i]);
	json_end(j);
	json_end(j);
}
