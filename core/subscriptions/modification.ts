/**
 * Request shapes of a modification: one type with its one object of parameters (docs/rules/subscriptions.md,
 * "Modifications"). actions/lifecycle/modify applies each type.
 */
import { z } from 'zod';
import { invalid } from '../foundation/error.ts';
import { anyCase, decimalText, orNull, timestampText } from '../foundation/record.ts';
import { detachAddonShape } from './attachment.ts';
import { attachAddonShape } from './record.ts';

const MODIFY_TYPES = [
  'quantity_change',
  'trial_end',
  'inheritance',
  'grouped_invoicing',
  'addon',
  'coupon',
  'tax',
] as const;
export type ModifyType = (typeof MODIFY_TYPES)[number];

/** Alternative names of a type that also imply its action: `grouped_invoicing_add` is `grouped_invoicing` with the action `add`. */
const ALIASES = { grouped_invoicing_add: 'add', grouped_invoicing_remove: 'remove' } as const;
type Alias = keyof typeof ALIASES;
const NAMES = [...MODIFY_TYPES, ...(Object.keys(ALIASES) as Alias[])] as [ModifyType, ...(ModifyType | Alias)[]];

const NOT_YET = { description: 'Not supported yet. A value with content is refused.' };
const ids = z.array(z.string().min(1)).min(1);

const quantityChangeParams = z.object({
  line_items: z
    .array(
      z.object({
        id: z.string().min(1).meta({ description: 'FIXED line item of the subscription. Each line is named once.' }),
        quantity: decimalText.meta({
          description: 'Units from `effective_date` on. A value below the `min_quantity` of its price is refused.',
        }),
        effective_date: orNull(timestampText).meta({
          description: 'Instant of the change, inside the running period. Default: now.',
        }),
      }),
    )
    .min(1)
    .max(100)
    .meta({ description: 'Lines whose quantity changes: 1 to 100.' }),
});
export type QuantityChangeParams = z.output<typeof quantityChangeParams>;

const trialEndParams = z.object({
  action: anyCase(['immediate', 'scheduled_date']).meta({
    description: 'Ends the trial now (immediate), or at `new_trial_end` (scheduled_date).',
  }),
  new_trial_end: orNull(timestampText).meta({ description: 'End of the trial for scheduled_date.' }),
});
export type TrialEndParams = z.output<typeof trialEndParams>;
const inheritanceParams = z.object({
  action: orNull(anyCase(['add', 'remove'])).meta({ description: 'Adds or removes children.' }),
  external_customer_ids_to_inherit_subscription: orNull(ids).meta({
    description: 'Customers to add, by the external id of their events.',
  }),
  external_customer_ids_to_remove: orNull(ids).meta({
    description: 'Customers to remove, by the external id of their events.',
  }),
});
const groupedInvoicingParams = z.object({
  action: orNull(anyCase(['add', 'remove'])).meta({
    description: 'Adds children to the group or removes them. Required, unless the type includes the action.',
  }),
  parent_subscription_id: orNull(z.string()).meta({
    description: 'Subscription whose invoice includes the lines of the children.',
  }),
  child_subscription_ids: orNull(ids).meta({ description: 'Subscriptions to add or remove.' }),
});
const addonParams = z.object({
  action: anyCase(['add', 'remove']).meta({ description: 'Attaches an add-on or detaches it.' }),
  add: orNull(attachAddonShape).meta({
    description: 'Add-on to attach. Required for the action add, refused for remove.',
  }),
  remove: orNull(detachAddonShape).meta({
    description: 'Add-on to detach. Required for the action remove, refused for add.',
  }),
});
const couponParams = z.object({
  action: anyCase(['add', 'remove']).meta({ description: 'Redeems a coupon or ends it.' }),
  coupon_code: orNull(z.string()).meta({
    description: 'Code of the coupon, case-insensitive. Required for the action add, refused for remove.',
  }),
  coupon_association_id: orNull(z.string()).meta({
    description: 'Association of the coupon to end. Required for the action remove, refused for add.',
  }),
  start_date: orNull(timestampText).meta({
    description:
      'Instant from which the coupon applies, not before the running period. For the action add only. Default: now.',
  }),
  end_date: orNull(timestampText).meta({
    description:
      'Exclusive end of the coupon. For the action add the default is no end; for remove it is now, and an earlier instant is refused.',
  }),
  subscription_id: orNull(z.string()).meta({
    description: 'Id of the modified subscription; any other id is refused. Default: the subscription in the path.',
  }),
  subscription_line_item_id: orNull(z.string()).meta({
    description: 'Line that the coupon discounts, for the action add. Default: the whole invoice.',
  }),
});
const taxParams = z.object({
  action: anyCase(['add', 'remove']).meta({ description: 'Attaches a tax rate or removes it.' }),
  tax_rate_id: orNull(z.string()).meta({
    description: 'Published, ACTIVE tax rate. Required for the action add, refused for remove.',
  }),
  tax_association_id: orNull(z.string()).meta({
    description: 'Association of the tax rate to remove. Required for the action remove, refused for add.',
  }),
  effective_date: orNull(timestampText).meta({
    description:
      'Instant at which the rate begins to apply (add) or ends (remove). Default: now. An instant before the running period is refused; for remove, every instant in the past is refused.',
  }),
});
const anything = orNull(z.record(z.string(), z.unknown())).meta(NOT_YET);

export const modifyShape = z.object({
  type: anyCase(NAMES).meta({
    description:
      'Kind of modification. The request has exactly the parameters of this type. grouped_invoicing_add and grouped_invoicing_remove stand for grouped_invoicing with that action.',
  }),
  quantity_change_params: orNull(quantityChangeParams).meta({ description: 'Parameters of the type quantity_change.' }),
  trial_end_params: orNull(trialEndParams).meta({ description: 'Parameters of the type trial_end.' }),
  inheritance_params: orNull(inheritanceParams).meta({ description: 'Parameters of the type inheritance.' }),
  grouped_invoicing_params: orNull(groupedInvoicingParams).meta({
    description: 'Parameters of the type grouped_invoicing.',
  }),
  addon_params: orNull(addonParams).meta({ description: 'Parameters of the type addon.' }),
  coupon_params: orNull(couponParams).meta({ description: 'Parameters of the type coupon.' }),
  tax_params: orNull(taxParams).meta({ description: 'Parameters of the type tax.' }),
  checkout: anything,
});
export type ModifyRequest = z.output<typeof modifyShape>;

export type Modification = {
  [Type in ModifyType]: { readonly type: Type; readonly params: NonNullable<ModifyRequest[`${Type}_params`]> };
}[ModifyType];

/** Checks that the field of the action is set and that no field of the other action is. */
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

/** Parses a request to a modification. Parameters that belong to another type are refused. */
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
