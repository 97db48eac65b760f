/** Requests and answers of summaries, the sums in the rows of lists. */
import { z } from 'zod';
import { decimalText } from '../../../core/foundation/record.ts';

const IDS_MAX = 100;

const listIds = (these: string) =>
  z
    .array(z.string().min(1))
    .min(1)
    .max(IDS_MAX, { error: `must not have more than ${IDS_MAX} entries` })
    .meta({ description: `Ids of the ${these}, 1 to ${IDS_MAX}. A repeated id counts once.` });

export const CurrencyAmount = z
  .object({
    currency: z.string().meta({ description: 'Currency code (ISO 4217), lowercase.' }),
    amount: decimalText.meta({ description: 'Sum in the currency.' }),
  })
  .meta({ id: 'CurrencyAmount' });

export const CustomerSummariesRequest = z
  .object({ customer_ids: listIds('customers') })
  .meta({ id: 'CustomerSummariesRequest', example: { customer_ids: ['cust_01JZ8K3M5N7P9Q1R3S5T7V9W1X'] } });

const CustomerSummary = z
  .object({
    customer_id: z.string().meta({ description: 'Id of the customer.' }),
    plan_names: z
      .array(z.string())
      .meta({ description: 'Names of the plans of its subscriptions, except drafts and cancelled ones.' }),
    owed: z
      .array(CurrencyAmount)
      .meta({ description: 'Unpaid amounts of its final invoices, one per currency; empty if it owes nothing.' }),
    overdue: z.array(CurrencyAmount).meta({ description: 'Part of `owed` that is past its due date.' }),
    balance: z.array(CurrencyAmount).meta({
      description:
        'Sums of `balance` of its active wallets, one per currency; empty without a wallet. Usage that is not ' +
        'invoiced is not deducted.',
    }),
  })
  .meta({ id: 'CustomerSummaryItem' });

export const CustomerSummariesAnswer = z
  .object({ items: z.array(CustomerSummary).meta({ description: 'One item per customer, in the requested order.' }) })
  .meta({ id: 'CustomerSummariesResponse' });

export const PlanSummariesRequest = z
  .object({ plan_ids: listIds('plans') })
  .meta({ id: 'PlanSummariesRequest', example: { plan_ids: ['plan_01JZ8K3M5N7P9Q1R3S5T7V9W1X'] } });

const PlanSummary = z
  .object({
    plan_id: z.string().meta({ description: 'Id of the plan.' }),
    active_subscriptions: z.int().meta({ description: 'Number of its active and trialing subscriptions.' }),
    recurring_revenue: z.array(CurrencyAmount).meta({
      description:
        'Monthly amounts of the fixed charges of its subscriptions now, with their add-ons, one per currency; empty ' +
        'if nothing recurs.',
    }),
  })
  .meta({ id: 'PlanSummaryItem' });

export const PlanSummariesAnswer = z
  .object({ items: z.array(PlanSummary).meta({ description: 'One item per plan, in the requested order.' }) })
  .meta({ id: 'PlanSummariesResponse' });
