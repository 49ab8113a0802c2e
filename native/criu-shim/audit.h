/* Has some pages saved that were not written, so that the agent can compare them. See audit.c. */
#pragma once

/* A region of PAGEMAP_SCAN. */
struct region {
	unsigned long start, end, categories;
};

/* The most regions of one answer, as in CRIU's pagemap cache. */
enum { REGIONS = 32768, SOFT_DIRTY = 128, AUDIT_FAILED = -1000 };

/* Has no content between two calls. */
extern struct region audit_room[REGIONS];

/*
 * Cuts single pages out of the unwritten regions and calls them written; as many as the answer has room for. Returns the
 * new number of regions, or AUDIT_FAILED.
 *
 * @param task pid of the process in the names of the images
 */
long audit(struct region *regions, long count, long room, unsigned long task);
