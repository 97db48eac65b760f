/** Repeated work on an invoice: bill its period again, send its webhooks again, finalize its draft at once. */

import { resendInvoiceEvent } from '../../../actions/invoicing/invoices/resend-invoice-event.ts';
import { finalizeLater } from '../../../actions/lifecycle/invoices/finalize-later.ts';
import { recalculateDraft, recalculateInvoice } from '../../../actions/lifecycle/invoices/recalculate-invoice.ts';
import { parseEventName } from '../../../core/platform/system-event/catalogue.ts';
import { InvoiceModel } from '../../../storage/models/invoicing/invoice.ts';
import { replayWorkflow } from '../../foundation/workflows/replay-workflow.ts';
import { WorkflowResult } from '../../foundation/workflows/schema.ts';
import { type Context, idParams, MessageAnswer, type Route, route, toAuthor } from '../../http/route.ts';
import { showInvoice } from './expand.ts';
import { FinalizeQuery, InvoiceAnswer, invoiceIdParams, ResendWebhookQuery, WebhookResentAnswer } from './schema.ts';

const tag = 'Invoices';

export const invoiceReprocessRoutes: Route[] = [
  route({
    method: 'post',
    path: '/invoices/:id/recalculate',
    operation_id: 'recalculateInvoice',
    summary: "Bill an invoice's period again",
    description:
      'Creates a new draft for the same period of the subscription, from the current usage; `finalize=true` makes ' +
      'it final at once. An invoice that is not void is voided first, and its payments go to the prepaid wallet. ' +
      'Allowed once per invoice: `recalculated_invoice_id` names the new invoice, which can be recalculated in ' +
      'turn.',
    tag,
    access: 'invoice:write',
    params: idParams,
    query: FinalizeQuery,
    success: 200,
    answer: InvoiceAnswer,
    idempotency: {
      replay: async (done, _input, context) => showStored(done.made('invoice'), context),
    },
    handle: async ({ params, query }, context) => {
      const input = { id: params.id, finalize: query.finalize, author: toAuthor(context) };
      return showInvoice(await recalculateInvoice(context.services, context.scope, input), context);
    },
  }),
  route({
    method: 'post',
    path: '/invoices/:id/recalculate-v2',
    operation_id: 'recalculateInvoiceV2',
    summary: 'Recompute a subscription draft in place',
    description:
      'Recomputes the draft from the current usage; `finalize=true` then makes it final. Refused unless the ' +
      'invoice is a draft of a subscription period.',
    tag,
    access: 'invoice:write',
    params: idParams,
    query: FinalizeQuery,
    success: 200,
    answer: InvoiceAnswer,
    idempotency: { replay: async (_done, { params }, context) => showStored(params.id, context) },
    handle: async ({ params, query }, context) => {
      const input = { id: params.id, finalize: query.finalize, author: toAuthor(context) };
      return showInvoice(await recalculateDraft(context.services, context.scope, input), context);
    },
  }),
  route({
    method: 'post',
    path: '/invoices/temporal/:invoice_id/finalize',
    operation_id: 'finalizeInvoiceLater',
    summary: 'Finalize a draft in the background',
    description:
      'Recomputes the draft and finalizes it, without the usual finalization delay. The answer names a workflow ' +
      'that can be polled.',
    tag,
    access: 'invoice:write',
    params: invoiceIdParams,
    success: 202,
    answer: WorkflowResult,
    idempotency: replayWorkflow(({ params: { invoice_id } }) => beingFinalized(invoice_id)),
    handle: async ({ params: { invoice_id } }, context) => {
      const input = { invoice_id, author: toAuthor(context) };
      const { id: workflow_id, run_id } = await finalizeLater(context.services, context.scope, input);
      return { message: beingFinalized(invoice_id), workflow_id, run_id };
    },
  }),
  route({
    method: 'post',
    path: '/invoices/:id/comms/trigger',
    operation_id: 'triggerInvoiceCommsWebhook',
    summary: 'Request the sending of an invoice',
    description:
      'Sends the event `invoice.communication.triggered` to the subscribed endpoints, with the invoice, its lines ' +
      'and its customer. Your own system then sends the invoice.',
    tag,
    access: 'invoice:write',
    params: idParams,
    success: 200,
    answer: MessageAnswer,
    idempotency: {
      replay: async (_done, { params: { id } }) => showWebhookSent('invoice.communication.triggered', id),
    },
    handle: async ({ params: { id } }, context) => {
      const event_name = 'invoice.communication.triggered';
      await resendInvoiceEvent(context.services, context.scope, { id, event_name, author: toAuthor(context) });
      return showWebhookSent(event_name, id);
    },
  }),
  route({
    method: 'post',
    path: '/invoices/:id/webhook/trigger',
    operation_id: 'triggerInvoiceWebhook',
    summary: 'Send an invoice webhook again',
    description:
      'Sends the event again with the current invoice. Refused if the event does not apply, such as a void event ' +
      'for an invoice that is not void.',
    tag,
    access: 'invoice:write',
    params: idParams,
    query: ResendWebhookQuery,
    success: 200,
    answer: WebhookResentAnswer,
    idempotency: {
      replay: async (_done, { params: { id }, query }) => showWebhookResent(parseEventName(query.event_name), id),
    },
    handle: async ({ params: { id }, query }, context) => {
      const resend = { id, event_name: query.event_name, author: toAuthor(context) };
      return showWebhookResent(await resendInvoiceEvent(context.services, context.scope, resend), id);
    },
  }),
];

async function showStored(id: string, context: Context) {
  const { scope, services } = context;
  return showInvoice(await InvoiceModel.fetch(scope, id, { database: services.postgres }), context);
}

function beingFinalized(id: string): string {
  return `invoice ${id} is being finalized`;
}

function showWebhookSent(event_name: string, id: string) {
  return { message: `${event_name} is told of invoice ${id}` };
}

function showWebhookResent(event_name: string, id: string) {
  return { message: `${event_name} is told of invoice ${id} again`, event_name };
}
