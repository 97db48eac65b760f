/** Builds the proof of an invoice, and the proof that it counts one event (docs/proof.md). */
import { notFound } from '../../../core/foundation/error.ts';
import { minorUnits } from '../../../core/foundation/money.ts';
import type { Scope } from '../../../core/foundation/scope.ts';
import type { Invoice } from '../../../core/invoicing/invoice/record.ts';
import { formatLeaf, toLeaf } from '../../../core/invoicing/proof/leaf.ts';
import { MerkleTree } from '../../../core/invoicing/proof/merkle.ts';
import {
  type EventProof,
  type InvoiceProof,
  type LineProof,
  PROOF_FORMAT,
} from '../../../core/invoicing/proof/record.ts';
import { listUnproven } from '../../../core/invoicing/proof/unproven.ts';
import type { Stores } from '../../../storage/foundation/stores.ts';
import { PriceModel } from '../../../storage/models/catalog/price.ts';
import { TaxRateModel } from '../../../storage/models/catalog/tax-rate.ts';
import { CouponApplicationModel } from '../../../storage/models/invoicing/coupon-application.ts';
import type { InvoiceLineItemModel } from '../../../storage/models/invoicing/invoice-line-item.ts';
import { TaxAppliedModel } from '../../../storage/models/invoicing/tax-applied.ts';
import { readCountedEvents } from './counted-events.ts';
import { gatherProvable, type LineCounting, type ProvableInvoice } from './gather.ts';
import { type LineSeal, sealLines, sha256 } from './seal-lines.ts';

type ProofQuery = {
  readonly invoice_id: string;
  readonly now: Date;
  readonly signal?: AbortSignal | undefined;
};

/** Builds the proof. Usage lines without a seal get one (seal-lines.ts). */
export async function buildInvoiceProof(stores: Stores, scope: Scope, query: ProofQuery): Promise<InvoiceProof> {
  const provable = await gatherProvable(stores.postgres, scope, query.invoice_id);
  const sealed = await sealLines(stores, scope, provable, query);
  const priceIds = provable.lines.flatMap(({ line }) => line.price_id ?? []);
  const prices = await PriceModel.byId(scope, priceIds, stores.postgres);
  const lines = provable.lines.map((one) => toLineProof(one, { sealed, price: prices.get(one.line.price_id ?? '') }));
  const { invoice } = provable;
  const [coupons, taxes] = [await loadCoupons(stores, invoice), await loadTaxes(stores, invoice)];
  return { format: PROOF_FORMAT, minor_units: minorUnits(invoice.currency), invoice, lines, coupons, taxes };
}

async function loadCoupons({ postgres }: Stores, invoice: Invoice): Promise<InvoiceProof['coupons']> {
  const query = { column: 'invoice_id', value: invoice.id, where: { status: 'published' }, order: ['position', 'id'] };
  const applications = await CouponApplicationModel.listBy(invoice, query, postgres);
  return applications.map((one) => ({
    coupon_id: one.coupon_id,
    coupon_association_id: one.coupon_association_id,
    line_id: one.invoice_line_item_id,
    terms: one.coupon_snapshot,
    original_price: one.original_price,
    discounted_amount: one.discounted_amount,
  }));
}

/** Loads the taxes with the terms of their rates, which cannot have changed since: a used rate is immutable. */
async function loadTaxes({ postgres }: Stores, invoice: Invoice): Promise<InvoiceProof['taxes']> {
  const where = { entity_type: 'invoice', status: 'published' };
  const query = { column: 'entity_id', value: invoice.id, where, order: ['position', 'id'] };
  const applied = await TaxAppliedModel.listBy(invoice, query, postgres);
  const rateIds = applied.map(({ tax_rate_id }) => tax_rate_id);
  const rates = await TaxRateModel.byId(invoice, rateIds, postgres);
  return applied.map(({ tax_rate_id, tax_association_id, taxable_amount, tax_amount, tax_behavior }) => {
    const { name, tax_rate_type, percentage_value, fixed_value } = rates.get(tax_rate_id)!;
    const terms = { name, tax_rate_type, percentage_value, fixed_value, tax_behavior };
    return { tax_rate_id, ...terms, is_given_back: tax_association_id === null, taxable_amount, tax_amount };
  });
}

type LineProofFacts = { readonly sealed: ReadonlyMap<string, LineSeal>; readonly price: PriceModel | undefined };

function toLineProof(
  { line, counting }: ProvableInvoice['lines'][number],
  { sealed, price }: LineProofFacts,
): LineProof {
  const { price_unit, conversion_rate } = price ?? {};
  const { seal = null, not_sealed = whyNotCounted(line) } = sealed.get(line.id) ?? {};
  return {
    line,
    price_unit: price_unit && conversion_rate ? { code: price_unit, conversion_rate } : null,
    counted: counting?.counted ?? null,
    seal,
    not_sealed,
    taken_as_stated: listUnproven({ line, counted: counting?.counted ?? null }),
  };
}

function whyNotCounted({ computed_from }: InvoiceLineItemModel): string | null {
  return computed_from?.meter_id ? 'the definition of the meter by which it was counted is not kept' : null;
}

/** Returns the path of one event in the proof tree of each line that counted it. For each line, all its events are read. */
export async function buildEventProof(
  stores: Stores,
  scope: Scope,
  { event_id, ...query }: ProofQuery & { readonly event_id: string },
): Promise<EventProof> {
  const provable = await gatherProvable(stores.postgres, scope, query.invoice_id);
  const sealed = await sealLines(stores, scope, provable, query);
  const paths = new Map<string, EventPath | null>();
  const lines: EventProof['lines'] = [];
  for (const { line, counting } of provable.lines) {
    if (counting === null || !sealed.get(line.id)?.seal) continue;
    if (!paths.has(counting.key))
      paths.set(counting.key, await findEventPath(stores, scope, { counting, event_id, signal: query.signal }));
    const found = paths.get(counting.key);
    if (found) lines.push({ line_id: line.id, ...found });
  }
  if (lines.length === 0) throw notFound(`in invoice ${query.invoice_id} event`, event_id);
  return { format: PROOF_FORMAT, invoice_id: query.invoice_id, event_id, lines };
}

type EventPath = Omit<EventProof['lines'][number], 'line_id'>;
type EventPathQuery = {
  readonly counting: LineCounting;
  readonly event_id: string;
  readonly signal: AbortSignal | undefined;
};

async function findEventPath(
  stores: Stores,
  scope: Scope,
  { counting, event_id, signal }: EventPathQuery,
): Promise<EventPath | null> {
  const tree = new MerkleTree(sha256);
  let found: Pick<EventPath, 'index' | 'leaf' | 'leaf_hash'> | null = null;
  for await (const { taken } of readCountedEvents(stores, scope, [counting], signal)) {
    const leaf = toLeaf(taken[0]!);
    const watched = leaf.event_id === event_id;
    const index = tree.size;
    const hash = tree.add(Buffer.from(formatLeaf(leaf)), { watched });
    const { timestamp_us, ...rest } = leaf;
    if (watched) found = { index, leaf: { ...rest, timestamp_us: String(timestamp_us) }, leaf_hash: toHex(hash) };
  }
  if (found === null) return null;
  const { root, path } = tree.finish();
  const steps = path.map(({ side, hash }) => ({ side, hash: toHex(hash) }));
  return { event_count: tree.size, ...found, path: steps, root: toHex(root) };
}

function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
