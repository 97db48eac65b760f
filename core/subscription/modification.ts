/**
 * What a modification of a subscription may ask for: one type, with the one object of parameters that goes with it
 * (docs/rules/subscriptions.md, "Modifications"). What each type does is in actions/subscriptions/modify.
 */
import { z } from 'zod';
import { detachAddonShape } from '../addon/attachment.ts';
import { invalid } from '../error.ts';
import { anyCase, decimalText, orNull, timestampText } from '../record.ts';
import { attachAddonShape } from './record.ts';

export const MODIFY_TYPES = [
  'quantity_change',
  'trial_end',
  'inheritance',
  'grouped_invoicing',
  'addon',
  'coupon',
  'tax',
] as const;
export type ModifyType = (typeof MODIFY_TYPES)[number];

/** Names under which a type and its action are known as well. */
const ALIASES = { grouped_invoicing_add: 'add', grouped_invoicing_remove: 'remove' } as const;
type Alias = keyof typeof ALIASES;
const NAMES = [...MODIFY_TYPES, ...(Object.keys(ALIASES) as Alias[])] as [ModifyType, ...(ModifyType | Alias)[]];

const NOT_YET = { description: 'Not there yet: refused when it says something.' };
const ids = z.array(z.string().min(1)).min(1);

export const quantityChangeParams = z.object({
  line_items: z
    .array(
      z.object({
        id: z.string().min(1).meta({ description: 'A FIXED line item of the subscription, named once.' }),
        quantity: decimalText.meta({ description: 'Units from then on; not below the `min_quantity` of its price.' }),
        effective_date: orNull(timestampText).meta({
          description: 'From when on, inside the running period; now when absent.',
        }),
      }),
    )
    .min(1)
    .max(100)
    .meta({ description: 'The lines whose quantity changes: 1 to 100.' }),
});
export type QuantityChangeParams = z.output<typeof quantityChangeParams>;

export const trialEndParams = z.object({
  action: anyCase(['immediate', 'scheduled_date']).meta({ description: 'Now, or at `new_trial_end`.' }),
  new_trial_end: orNull(timestampText).meta({ description: 'Of scheduled_date: when the trial ends.' }),
});
export type TrialEndParams = z.output<typeof trialEndParams>;
export const inheritanceParams = z.object({
  action: orNull(anyCase(['add', 'remove'])).meta({ description: 'Whether children are added or removed.' }),
  external_customer_ids_to_inherit_subscription: orNull(ids).meta({ description: 'Customers, by the ids of events.' }),
  external_customer_ids_to_remove: orNull(ids).meta({ description: 'Customers, by the ids of events.' }),
});
export const groupedInvoicingParams = z.object({
  action: orNull(anyCase(['add', 'remove'])).meta({ description: 'Whether children are added or removed.' }),
  parent_subscription_id: orNull(z.string()).meta({ description: 'Whose invoice has their lines.' }),
  child_subscription_ids: orNull(ids).meta({ description: 'The subscriptions that are added or removed.' }),
});
export const addonParams = z.object({
  action: anyCase(['add', 'remove']).meta({ description: 'Whether an add-on is attached or detached.' }),
  add: orNull(attachAddonShape).meta({ description: 'Of add: what is attached.' }),
  remove: orNull(detachAddonShape).meta({ description: 'Of remove: what is detached.' }),
});
export const couponParams = z.object({
  action: anyCase(['add', 'remove']).meta({ description: 'Whether a coupon is redeemed, or taken away again.' }),
  coupon_code: orNull(z.string()).meta({ description: 'Of add: the code of the coupon, in any case of its letters.' }),
  coupon_association_id: orNull(z.string()).meta({ description: 'Of remove: which coupon of the subscription.' }),
  start_date: orNull(timestampText).meta({
    description: 'Of add: from when on it works, not before the running period; now when absent.',
  }),
  end_date: orNull(timestampText).meta({
    description:
      'Until when it works, exclusive. Of add open when absent; of remove now when absent, and not before now.',
  }),
  subscription_id: orNull(z.string()).meta({ description: 'The subscription that is modified, if it is stated.' }),
  subscription_line_item_id: orNull(z.string()).meta({
    description: 'Of add: the line that it takes from; from the invoice when absent.',
  }),
});
export const taxParams = z.object({
  action: anyCase(['add', 'remove']).meta({ description: 'Whether a tax rate is attached, or removed.' }),
  tax_rate_id: orNull(z.string()).meta({ description: 'Of add: a published rate that is ACTIVE.' }),
  tax_association_id: orNull(z.string()).meta({ description: 'Of remove: which association of the subscription.' }),
  effective_date: orNull(timestampText).meta({
    description: 'From when on, or until when; now when absent. Not before the running period, or, of remove, now.',
  }),
});
const anything = orNull(z.record(z.string(), z.unknown())).meta(NOT_YET);

export const modifyShape = z.object({
  type: anyCase(NAMES).meta({
    description:
      'What is modified; exactly the parameters of this type are stated. grouped_invoicing_add and grouped_invoicing_remove are grouped_invoicing with that action.',
  }),
  quantity_change_params: orNull(quantityChangeParams).meta({ description: 'Of quantity_change.' }),
  trial_end_params: orNull(trialEndParams).meta({ description: 'Of trial_end.' }),
  inheritance_params: orNull(inheritanceParams).meta({ description: 'Of inheritance.' }),
  grouped_invoicing_params: orNull(groupedInvoicingParams).meta({ description: 'Of grouped_invoicing.' }),
  addon_params: orNull(addonParams).meta({ description: 'Of addon.' }),
  coupon_params: orNull(couponParams).meta({ description: 'Of coupon.' }),
  tax_params: orNull(taxParams).meta({ description: 'Of tax.' }),
  checkout: anything,
});
export type ModifyRequest = z.output<typeof modifyShape>;

/** A type with its parameters. */
export type Modification = {
  [Type in ModifyType]: { readonly type: Type; readonly params: NonNullable<ModifyRequest[`${Type}_params`]> };
}[ModifyType];

/** What the action needs is there, and what belongs to the other one is not. */
export function checkParams<Params extends { readonly action: 'add' | 'remove' }>(
  params: Params,
  prefix: string,
  fields: {
    readonly [Action in 'add' | 'remove']: { needs: keyof Params & string; others?: (keyof Params & string)[] };
  },
): void {
  const { action } = params;
  const { needs } = fields[action];
  const foreign = fields[action === 'add' ? 'remove' : 'add'];
  for (const field of [foreign.needs, ...(foreign.others ?? [])])
    if (params[field] !== null) throw invalid(`${prefix}.${field}`, `does not go with action ${action}`);
  if (!params[needs]) throw invalid(`${prefix}.${needs}`, `is required for action ${action}`);
}

/** Exactly the parameters of the type must be there. */
export function parseModification(request: ModifyRequest): Modification {
  const type = toModifyType(request.type);
  const field = `${type}_params` as const;
  for (const other of MODIFY_TYPES) {
    if (other !== type && request[`${other}_params`] !== null)
      throw invalid(`${other}_params`, `does not go with type ${request.type}`);
  }
  const params = request[field];
  if (params === null) throw invalid(field, `is required for type ${request.type}`);
  const action = ALIASES[request.type as Alias];
  if (action !== undefined && 'action' in params && params.action !== null && params.action !== action)
    throw invalid(`${field}.action`, `does not go with type ${request.type}`);
  const whole = action === undefined ? params : { ...params, action };
  return { type, params: whole } as Modification;
}

function toModifyType(name: ModifyRequest['type']): ModifyType {
  return name in ALIASES ? 'grouped_invoicing' : (name as ModifyType);
}
