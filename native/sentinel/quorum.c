#include "quorum.h"

const int64_t never_ns = INT64_MIN / 4;

/* Returns when the last of the answers was sent that the set needs; the answers needed are half of the voters, rounded up. */
static int64_t decisive(const struct voters *set, const int64_t *sent)
{
	int64_t latest[VOTERS_MAX];
	size_t known = 0;

	for (size_t i = 0; i < set->count; i++) {
		int64_t at = sent[set->list[i]];
		size_t place = known++;

		for (; place > 0 && latest[place - 1] < at; place--)
			latest[place] = latest[place - 1];
		latest[place] = at;
	}
	return set->count == 0 ? never_ns : latest[(set->count + 1) / 2 - 1];
}

int64_t serves_until(const struct voters *sets, size_t count, const int64_t *sent, int64_t timeout_ns)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < count; i++) {
		int64_t at = decisive(&sets[i], sent);

		if (at < first)
			first = at;
	}
	return count == 0 || first == never_ns ? never_ns : first + timeout_ns / 3 * 2;
}
