/**
 * Checks drafted bodies, from rules or from a model, against the rules of their requests. An invalid body is removed
 * together with the bodies that name it, and is reported with its reason. Every body in the answer would therefore be
 * accepted.
 */
import { z } from 'zod';
import { FarthingError, invalid } from '../../foundation/error.ts';
import {
  type Aggregation,
  type CompileExpression,
  checkMeter,
  createMeterShape,
  refuseUnclearNames,
} from '../../metering/meter/record.ts';
import { NO_GRANTS } from '../entitlement/grant-record.ts';
import { checkEntitlement, checkMeterOfEntitlement } from '../entitlement/record.ts';
import { checkMeterOfFeature } from '../feature/record.ts';
import { definePrice } from '../price/define.ts';
import { createPriceShape } from '../price/record.ts';
import { type Configuration, entitlementBody, featureBody, type NotUnderstood, planBody } from './record.ts';

const draftShape = z.object({
  plans: z.array(z.unknown()).default([]),
  meters: z.array(z.unknown()).default([]),
  features: z.array(z.unknown()).default([]),
  prices: z.array(z.unknown()).default([]),
  entitlements: z.array(z.unknown()).default([]),
});
const itemShape = z.object({ ref: z.string().min(1).max(255), body: z.unknown() });

type CheckedConfiguration = { configuration: Configuration; rejected: NotUnderstood[] };

export function checkConfiguration(draft: unknown, compileExpression?: CompileExpression): CheckedConfiguration {
  const drafted = draftShape.parse(draft);
  const rejected: NotUnderstood[] = [];
  const checkItems = buildItemCheck(rejected);
  const plans = checkItems('plan', drafted.plans, (body) => planBody.parse(body));
  const meters = checkItems('meter', drafted.meters, (body) => {
    const meter = createMeterShape.parse(body);
    checkMeter(meter, compileExpression);
    refuseUnclearNames(meter.aggregation);
    return meter;
  });
  const names = { plan: toRefs(plans), meter: toRefs(meters) };
  const features = checkItems('feature', drafted.features, (body) => checkedFeature(body, names.meter));
  const prices = checkItems('price', drafted.prices, (body) => checkedPrice(body, names));
  const named = {
    ...names,
    feature: new Map(features.map(({ ref, body }) => [ref, body])),
    aggregation: new Map(meters.map(({ ref, body }) => [ref, body.aggregation])),
  };
  const entitlements = checkItems('entitlement', drafted.entitlements, (body) => checkedEntitlement(body, named));
  return { configuration: { plans, meters, features, prices, entitlements }, rejected };
}

const toRefs = (items: readonly { ref: string }[]) => new Set(items.map(({ ref }) => ref));

function buildItemCheck(rejected: NotUnderstood[]) {
  const refs = new Set<string>();
  return <Body>(
    what: string,
    items: readonly unknown[],
    check: (body: unknown) => Body,
  ): { ref: string; body: Body }[] =>
    items.flatMap((item) => {
      const parsed = itemShape.safeParse(item);
      const ref = parsed.success ? parsed.data.ref : what;
      try {
        if (!parsed.success) throw invalid('ref', 'and body are what an item has');
        if (refs.has(ref)) throw invalid('ref', `${ref} is there twice`);
        const body = check(parsed.data.body);
        refs.add(ref);
        return [{ ref, body }];
      } catch (error) {
        rejected.push({ text: ref, reason: `the ${what} would be refused: ${deriveReason(error)}` });
        return [];
      }
    });
}

function deriveReason(error: unknown): string {
  if (error instanceof FarthingError) return error.message;
  if (!(error instanceof z.ZodError)) throw error;
  const [issue] = error.issues;
  return `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is wrong'}`;
}

/** An id in a drafted body is the ref of another drafted body, which must exist. */
function checkRef(field: string, ref: string | null, known: ReadonlySet<string> | ReadonlyMap<string, unknown>): void {
  if (ref !== null && !known.has(ref)) throw invalid(field, `${ref} is not the ref of anything here`);
}

type RefNames = { readonly plan: ReadonlySet<string>; readonly meter: ReadonlySet<string> };

function checkedPrice(body: unknown, names: RefNames) {
  const price = createPriceShape.parse(body);
  definePrice(price);
  if (price.entity_type !== 'PLAN') throw invalid('entity_type', 'must be PLAN');
  checkRef('entity_id', price.entity_id, names.plan);
  checkRef('meter_id', price.meter_id, names.meter);
  return price;
}

function checkedFeature(body: unknown, meters: ReadonlySet<string>) {
  const feature = featureBody.parse(body);
  checkMeterOfFeature({ ...feature, has_meter: false });
  checkRef('meter_id', feature.meter_id, meters);
  return feature;
}

type GrantNames = RefNames & {
  readonly feature: ReadonlyMap<string, z.output<typeof featureBody>>;
  readonly aggregation: ReadonlyMap<string, Aggregation>;
};

function checkedEntitlement(body: unknown, names: GrantNames) {
  const entitlement = entitlementBody.parse(body);
  checkRef('entity_id', entitlement.entity_id, names.plan);
  checkRef('feature_id', entitlement.feature_id, names.feature);
  const feature = names.feature.get(entitlement.feature_id);
  if (feature?.type !== entitlement.feature_type) throw invalid('feature_type', 'must be that of the feature');
  checkEntitlement({
    ...NO_GRANTS,
    ...entitlement,
    static_value: null,
    config_value: null,
    start_date: null,
    end_date: null,
  });
  const aggregation = names.aggregation.get(feature.meter_id ?? '');
  if (aggregation) checkMeterOfEntitlement(aggregation);
  return entitlement;
}
