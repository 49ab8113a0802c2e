#include "expressions.h"

#include <linux/netfilter/nf_tables.h>

struct expression expression(struct batch *batch, const char *name)
{
	struct expression opened = { .element = nest(batch, NFTA_LIST_ELEM) };

	put_text(batch, NFTA_EXPR_NAME, name);
	opened.data = nest(batch, NFTA_EXPR_DATA);
	return opened;
}

void end_expression(struct batch *batch, struct expression opened)
{
	unnest(batch, opened.data);
	unnest(batch, opened.element);
}

void put_data(struct batch *batch, uint16_t attribute, const void *value, size_t length)
{
	size_t opened = nest(batch, attribute);

	put_bytes(batch, NFTA_DATA_VALUE, value, length);
	unnest(batch, opened);
}

void load(struct batch *batch, const char *name, uint32_t key)
{
	/* `meta` and `ct` number these two attributes alike. */
	struct expression opened = expression(batch, name);

	put_u32(batch, NFTA_META_DREG, NFT_REG_1);
	put_u32(batch, NFTA_META_KEY, key);
	end_expression(batch, opened);
}

void compare(struct batch *batch, uint32_t reg, uint32_t operation, const void *value, size_t length)
{
	struct expression opened = expression(batch, "cmp");

	put_u32(batch, NFTA_CMP_SREG, reg);
	put_u32(batch, NFTA_CMP_OP, operation);
	put_data(batch, NFTA_CMP_DATA, value, length);
	end_expression(batch, opened);
}
