/** Notices of payment providers. They have no API key; their signature authenticates them. */
import { z } from 'zod';
import { receiveNotice } from '../../actions/lifecycle/payments/receive-notice.ts';
import { runAs } from '../../storage/foundation/request-context.ts';
import { loadClock } from '../../storage/models/schedule/environment-clock.ts';
import { type Context, MessageAnswer, type Route, route } from '../http/route.ts';

const Place = z.object({
  tenant_id: z.string().min(1).meta({ description: 'Id of the tenant.' }),
  environment_id: z.string().min(1).meta({ description: 'Id of the environment.' }),
});

/** The body is parsed from its bytes, because the signature covers the bytes. */
const SandboxNotice = z.record(z.string(), z.unknown()).meta({
  id: 'SandboxNotice',
  example: { type: 'payment.succeeded', data: { gateway_payment_id: 'sbx_01JZ8K3M5N7P9Q1R3S5T7V9W1X' } },
});

export const providerNoticeRoutes: Route[] = [
  route({
    method: 'post',
    path: '/webhooks/sandbox/:tenant_id/:environment_id',
    operation_id: 'receiveSandboxWebhook',
    summary: 'Receive a sandbox payment notice',
    description:
      'Records a payment outcome from the sandbox. The request is signed according to Standard Webhooks, with the ' +
      'secret of the environment. `type` is payment.succeeded or payment.failed, and `data.gateway_payment_id` ' +
      'names the payment. Also served without /v1. A failure is answered with an error, so that the sender ' +
      'retries.',
    tag: 'Payments',
    access: 'public',
    signed: ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
    params: Place,
    body: SandboxNotice,
    success: 200,
    answer: MessageAnswer,
    handle: async ({ params: scope }, context) => {
      const requestContext = { scope, user_id: 'sandbox', secret_id: null, request_id: context.request_id };
      const payment = await runAs(requestContext, () => received(scope, context));
      return { message: `payment ${payment.id} is ${payment.payment_status}` };
    },
  }),
];

function received(scope: z.output<typeof Place>, { services, request, received_at }: Context) {
  const secret = services.config.PAYMENT_SANDBOX_SECRET ?? null;
  const headers = Object.fromEntries(
    ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => [name, request.get(name)]),
  );
  const notice = { headers, body: String(request.body), secret };
  const now = async () => (await loadClock(services.postgres, scope))?.now ?? received_at;
  return receiveNotice(services, scope, { gateway: 'sandbox', notice, now });
}
