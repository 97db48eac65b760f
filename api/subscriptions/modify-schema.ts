/** Modifications of a subscription, as they are asked for and answered. */
import { z } from 'zod';
import { decimalText, timestampText } from '../../core/record.ts';
import { modifyShape } from '../../core/subscription/modification.ts';
import { SUBSCRIPTION_STATUSES } from '../../core/subscription/record.ts';
import { InvoiceWithoutParts } from '../invoices/answer.ts';
import { WalletTransactionAnswer } from '../wallets/schema.ts';
import { SubscriptionAnswer } from './answer.ts';

export const ModifySubscription = modifyShape.meta({
  id: 'ExecuteSubscriptionModifyRequest',
  example: {
    type: 'quantity_change',
    quantity_change_params: { line_items: [{ id: 'subs_line_01JZ8K3M5N7P9Q1R3S5T7V9W1X', quantity: '5' }] },
  },
});

const ChangedLineItem = z
  .object({
    id: z.string().meta({ description: 'Empty in a preview for a line that is not there yet.' }),
    price_id: z.string().meta({ description: 'The price that it charges.' }),
    quantity: decimalText.meta({ description: 'Units of a FIXED price; 0 of a USAGE price.' }),
    start_date: timestampText.nullable().meta({ description: 'From when on it is charged.' }),
    end_date: timestampText.nullable().meta({ description: 'Until when, exclusive; null is open.' }),
    change_action: z.enum(['created', 'updated', 'ended']).meta({ description: 'What becomes of it.' }),
  })
  .meta({ id: 'ChangedLineItem' });

const ChangedSubscription = z
  .object({
    id: z.string().meta({ description: 'The subscription that is changed.' }),
    action: z.enum(['created', 'updated']).meta({ description: 'What becomes of it.' }),
    status: z.enum(SUBSCRIPTION_STATUSES).meta({ description: 'Its state after the change.' }),
    trial_end: timestampText.nullable().meta({ description: 'Where the change moves it; null else.' }),
    current_period_end: timestampText.nullable().meta({ description: 'Where the change moves it; null else.' }),
  })
  .meta({ id: 'ChangedSubscription' });

const ChangedInvoice = z
  .object({
    id: z.string().meta({ description: 'The invoice; empty in a preview.' }),
    action: z.enum(['created', 'wallet_credit']).meta({
      description:
        'created: it is to be paid. wallet_credit: it comes to less than 0, lowers what the subscription still owes, and goes to a wallet as far as it was paid.',
    }),
    status: z.enum(['preview', 'issued']).meta({ description: 'Whether it was only asked for.' }),
    invoice: InvoiceWithoutParts.nullable().meta({
      description: 'With its lines: what is given back, and what is charged.',
    }),
    wallet_transaction: WalletTransactionAnswer.nullable().meta({
      description: 'The credit of a wallet; null in a preview and where nothing was paid.',
    }),
  })
  .meta({ id: 'ChangedInvoice' });

export const ChangedResourcesAnswer = z
  .object({
    line_items: z.array(ChangedLineItem).meta({ description: 'Line items that end or begin.' }),
    subscriptions: z.array(ChangedSubscription).meta({ description: 'Subscriptions that change with it.' }),
    invoices: z
      .array(ChangedInvoice)
      .meta({ description: 'At most one: what the change credits and charges, netted.' }),
  })
  .meta({ id: 'ChangedResources' });

export const ModifySubscriptionAnswer = z
  .object({
    subscription: SubscriptionAnswer.nullable().meta({
      description: 'As it is after the change; as it is now in a preview.',
    }),
    changed_resources: ChangedResourcesAnswer.meta({ description: 'What the change does.' }),
    checkout_session: z.null().meta({ description: 'Checkouts are not there yet.' }),
  })
  .meta({ id: 'SubscriptionModifyResponse' });
