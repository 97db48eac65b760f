/** Requests and answers of subscription modifications. */
import { z } from 'zod';
import { decimalText, timestampText } from '../../../core/foundation/record.ts';
import { modifyShape } from '../../../core/subscriptions/modification.ts';
import { SUBSCRIPTION_STATUSES } from '../../../core/subscriptions/record.ts';
import { WalletTransactionAnswer } from '../../credits/wallets/schema.ts';
import { SubscriptionAnswer } from '../../subscriptions/answer.ts';
import { InvoiceWithoutParts } from '../../subscriptions/invoice-answer.ts';

export const ModifySubscription = modifyShape.meta({
  id: 'ExecuteSubscriptionModifyRequest',
  example: {
    type: 'quantity_change',
    quantity_change_params: { line_items: [{ id: 'subs_line_01JZ8K3M5N7P9Q1R3S5T7V9W1X', quantity: '5' }] },
  },
});

const ChangedLineItem = z
  .object({
    id: z.string().meta({ description: 'Id of the line item; empty in a preview for a line that does not exist yet.' }),
    price_id: z.string().meta({ description: 'Price of the line.' }),
    quantity: decimalText.meta({ description: 'Units of a FIXED price; 0 for a USAGE price.' }),
    start_date: timestampText.nullable().meta({ description: 'Start of the charge.' }),
    end_date: timestampText.nullable().meta({ description: 'End of the charge, exclusive; null without an end.' }),
    change_action: z.enum(['created', 'updated', 'ended']).meta({ description: 'Change of the line item.' }),
  })
  .meta({ id: 'ChangedLineItem' });

const ChangedSubscription = z
  .object({
    id: z.string().meta({ description: 'Id of the changed subscription.' }),
    action: z.enum(['created', 'updated']).meta({ description: 'Change of the subscription.' }),
    status: z.enum(SUBSCRIPTION_STATUSES).meta({ description: 'Status after the change.' }),
    trial_end: timestampText.nullable().meta({ description: 'New end of the trial; null if unchanged.' }),
    current_period_end: timestampText
      .nullable()
      .meta({ description: 'New end of the current period; null if unchanged.' }),
  })
  .meta({ id: 'ChangedSubscription' });

const ChangedInvoice = z
  .object({
    id: z.string().meta({ description: 'Id of the invoice; empty in a preview.' }),
    action: z.enum(['created', 'wallet_credit']).meta({
      description:
        'created: the invoice must be paid. wallet_credit: its total is negative; it reduces the unpaid amount of ' +
        'the subscription, and the paid part of it goes to a wallet.',
    }),
    status: z.enum(['preview', 'issued']).meta({ description: 'preview in a preview, else issued.' }),
    invoice: InvoiceWithoutParts.nullable().meta({
      description: 'Invoice with its lines for credits and charges.',
    }),
    wallet_transaction: WalletTransactionAnswer.nullable().meta({
      description: 'Wallet credit; null in a preview, and if nothing was paid.',
    }),
  })
  .meta({ id: 'ChangedInvoice' });

export const ChangedResourcesAnswer = z
  .object({
    line_items: z.array(ChangedLineItem).meta({ description: 'Line items that end or begin.' }),
    subscriptions: z.array(ChangedSubscription).meta({ description: 'Subscriptions that change as a result.' }),
    invoices: z
      .array(ChangedInvoice)
      .meta({ description: 'At most one invoice, with the net of credits and charges.' }),
  })
  .meta({ id: 'ChangedResources' });

export const ModifySubscriptionAnswer = z
  .object({
    subscription: SubscriptionAnswer.nullable().meta({
      description: 'Subscription after the change; in a preview, its current state.',
    }),
    changed_resources: ChangedResourcesAnswer.meta({ description: 'Effects of the change.' }),
    checkout_session: z.null().meta({ description: 'Always null; checkouts are not supported yet.' }),
  })
  .meta({ id: 'SubscriptionModifyResponse' });
