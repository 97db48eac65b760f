/** Registry of the modification types. */
import type { ModifyType } from '../../../core/subscriptions/modification.ts';
import { planAddonChange } from './addon.ts';
import { planCouponChange } from './coupon.ts';
import { planGroupedInvoicing } from './grouped-invoicing.ts';
import { planInheritance } from './inheritance.ts';
import type { PlanModification } from './modification.ts';
import { planQuantityChange } from './quantity-change.ts';
import { planTaxChange } from './tax.ts';
import { planTrialEnd } from './trial-end.ts';

export const MODIFICATIONS: { readonly [Type in ModifyType]: PlanModification<Type> } = {
  quantity_change: planQuantityChange,
  inheritance: planInheritance,
  grouped_invoicing: planGroupedInvoicing,
  trial_end: planTrialEnd,
  addon: planAddonChange,
  coupon: planCouponChange,
  tax: planTaxChange,
};
