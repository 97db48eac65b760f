/** What is done once more to an invoice: its period billed again, its webhooks told again, its draft made final at once. */
import { finalizeLater } from '../../actions/invoices/finalize-later.ts';
import { recalculateDraft, recalculateInvoice } from '../../actions/invoices/recalculate-invoice.ts';
import { resendInvoiceEvent } from '../../actions/invoices/resend-invoice-event.ts';
import { parseEventName } from '../../core/system-event/catalogue.ts';
import { InvoiceModel } from '../../storage/models/invoice.ts';
import { authorOf, type Context, idParams, MessageAnswer, type Route, route } from '../http/route.ts';
import { runAgain } from '../workflows/run-again.ts';
import { WorkflowResult } from '../workflows/schema.ts';
import { showInvoice } from './expand.ts';
import { FinalizeQuery, InvoiceAnswer, invoiceIdParams, TellAgainQuery, ToldAgain } from './schema.ts';

const tag = 'Invoices';

export const invoiceAgainRoutes: Route[] = [
  route({
    method: 'post',
    path: '/invoices/:id/recalculate',
    operation_id: 'recalculateInvoice',
    summary: 'Bill the period of a void invoice again',
    description:
      'A new draft for the same period of the subscription, from the usage as it is now; with `finalize=true` it is final at once. One that is not void yet is voided first, and what was paid on it goes to the prepaid wallet. Once for an invoice: `recalculated_invoice_id` names the new one, which can be recalculated in its turn.',
    tag,
    access: 'invoice:write',
    params: idParams,
    query: FinalizeQuery,
    success: 200,
    answer: InvoiceAnswer,
    once: {
      again: async (done, _input, context) => showStored(done.made('invoice'), context),
    },
    handle: async ({ params, query }, context) => {
      const asked = { id: params.id, finalize: query.finalize, author: authorOf(context) };
      return showInvoice(await recalculateInvoice(context.services, context.scope, asked), context);
    },
  }),
  route({
    method: 'post',
    path: '/invoices/:id/recalculate-v2',
    operation_id: 'recalculateInvoiceV2',
    summary: 'Compute the draft of a subscription anew in its place',
    description:
      'From the usage as it is now; with `finalize=true` it is final then. Refused for what is no draft of a period of a subscription.',
    tag,
    access: 'invoice:write',
    params: idParams,
    query: FinalizeQuery,
    success: 200,
    answer: InvoiceAnswer,
    once: { again: async (_done, { params }, context) => showStored(params.id, context) },
    handle: async ({ params, query }, context) => {
      const asked = { id: params.id, finalize: query.finalize, author: authorOf(context) };
      return showInvoice(await recalculateDraft(context.services, context.scope, asked), context);
    },
  }),
  route({
    method: 'post',
    path: '/invoices/temporal/:invoice_id/finalize',
    operation_id: 'finalizeInvoiceLater',
    summary: 'Finalize a draft in the background',
    description:
      'Without waiting until it has rested: it is computed once more, and final then. The answer names a workflow to ask after.',
    tag,
    access: 'invoice:write',
    params: invoiceIdParams,
    success: 202,
    answer: WorkflowResult,
    once: runAgain(({ params: { invoice_id } }) => beingFinalized(invoice_id)),
    handle: async ({ params: { invoice_id } }, context) => {
      const asked = { invoice_id, author: authorOf(context) };
      const { id: workflow_id, run_id } = await finalizeLater(context.services, context.scope, asked);
      return { message: beingFinalized(invoice_id), workflow_id, run_id };
    },
  }),
  route({
    method: 'post',
    path: '/invoices/:id/comms/trigger',
    operation_id: 'triggerInvoiceCommsWebhook',
    summary: 'Ask for an invoice to be sent',
    description:
      'Tells `invoice.communication.triggered` to the endpoints that want it, with the invoice, its lines and its customer: whoever sends your invoices does it.',
    tag,
    access: 'invoice:write',
    params: idParams,
    success: 200,
    answer: MessageAnswer,
    once: { again: async (_done, { params: { id } }) => isTold('invoice.communication.triggered', id) },
    handle: async ({ params: { id } }, context) => {
      const event_name = 'invoice.communication.triggered';
      await resendInvoiceEvent(context.services, context.scope, { id, event_name, author: authorOf(context) });
      return isTold(event_name, id);
    },
  }),
  route({
    method: 'post',
    path: '/invoices/:id/webhook/trigger',
    operation_id: 'triggerInvoiceWebhook',
    summary: 'Tell a webhook of an invoice again',
    description: 'Of what is true of it: one that is not void is not told to be.',
    tag,
    access: 'invoice:write',
    params: idParams,
    query: TellAgainQuery,
    success: 200,
    answer: ToldAgain,
    once: { again: async (_done, { params: { id }, query }) => isToldAgain(parseEventName(query.event_name), id) },
    handle: async ({ params: { id }, query }, context) => {
      const telling = { id, event_name: query.event_name, author: authorOf(context) };
      return isToldAgain(await resendInvoiceEvent(context.services, context.scope, telling), id);
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

function isTold(event_name: string, id: string) {
  return { message: `${event_name} is told of invoice ${id}` };
}

function isToldAgain(event_name: string, id: string) {
  return { message: `${event_name} is told of invoice ${id} again`, event_name };
}
