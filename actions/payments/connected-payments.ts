/**
 * Payments by the tenant's own account at a provider. The customer is pushed first, if the provider has customers. A refused request is a failed payment. Any other failure is `service_unavailable`: the result
 * is unknown, and is requested again with the same key.
 */
import { unavailable } from '../../core/foundation/error.ts';
import type { Scope } from '../../core/foundation/scope.ts';
import type { PaymentGateway } from '../../core/payments/record.ts';
import type { AccountPayments, RequestedPayment } from '../../integrations/account-payments.ts';
import type {
  PaymentOutcome,
  PaymentProvider,
  PaymentRequest,
  Refund,
  RefundOutcome,
} from '../../integrations/payment-provider.ts';
import { ProviderError } from '../../integrations/provider-error.ts';
import { IntegrationMappingModel } from '../../storage/models/foundation/integration-mapping.ts';
import { measureKeyAge } from '../../storage/postgres/database-time.ts';
import { CALL_MS_MAX, callWithin } from '../foundation/connections/call-deadline.ts';
import { endPause, pauseConnection } from '../foundation/connections/connection-runs.ts';
import { checkTaxedOnce } from '../foundation/connections/merchant-of-record.ts';
import { ensureProviderCustomer } from '../foundation/connections/push-record.ts';
import { type CallingStores, getPayments, type OpenedGateway, openGateway } from './open-gateway.ts';

export class ConnectedPayments implements PaymentProvider {
  readonly #stores: CallingStores;
  readonly #gateway: PaymentGateway;
  readonly #call_ms_max: number;

  constructor(stores: CallingStores, gateway: PaymentGateway, call_ms_max = CALL_MS_MAX) {
    this.#stores = stores;
    this.#gateway = gateway;
    this.#call_ms_max = call_ms_max;
  }

  /**
   * Opens the account for a call. If the provider is unavailable, the connection pauses, and due payments wait like
   * records to be pushed.
   */
  async #open(scope: Scope, now: Date): Promise<OpenedGateway> {
    const opened = await openGateway(this.#stores, scope, { gateway: this.#gateway, now });
    const { connection } = opened;
    const call: OpenedGateway['call'] = async (act) => {
      try {
        const result = await callWithin(this.#call_ms_max, () => opened.call(act));
        await endPause(this.#stores, connection);
        return result;
      } catch (error) {
        if (isAway(error)) await pauseConnection(this.#stores, connection, { error, now });
        throw error;
      }
    };
    return { connection, call };
  }

  async charge(scope: Scope, request: PaymentRequest & { payment_method_id: string }): Promise<PaymentOutcome> {
    return await this.#request(scope, request, async (payments, requested) => {
      if (!payments.charge) return this.#decline('charges no saved payment methods');
      const { payment_method_id: provider_payment_method_id, success_url } = request;
      return await payments.charge({ ...requested, provider_payment_method_id, success_url });
    });
  }

  async openLink(scope: Scope, request: PaymentRequest): Promise<PaymentOutcome> {
    return await this.#request(scope, request, async (payments, requested) => {
      if (!payments.openPage) return this.#decline('has no payment pages');
      const { success_url, cancel_url, saves_payment_method } = request;
      return await payments.openPage({ ...requested, success_url, cancel_url, saves_payment_method });
    });
  }

  #decline(why: string): PaymentOutcome {
    return { outcome: 'failed', gateway_payment_id: null, error: `${this.#gateway} ${why}` };
  }

  async #request(
    scope: Scope,
    request: PaymentRequest,
    send: (payments: AccountPayments, requested: RequestedPayment) => Promise<PaymentOutcome>,
  ): Promise<PaymentOutcome> {
    const { now } = request;
    try {
      const opened = await this.#open(scope, now);
      const { invoice_id: id, currency } = request;
      await checkTaxedOnce({ ...scope, id, currency }, opened.connection, this.#stores.postgres);
      const requested = await this.#identify(scope, request, opened);
      return await opened.call((account) => send(getPayments(account), requested));
    } catch (error) {
      if (isRefusal(error)) return { outcome: 'failed', gateway_payment_id: null, error: error.message };
      throw toUnavailable(error);
    }
  }

  async findOutcome(scope: Scope, request: PaymentRequest): Promise<PaymentOutcome | null> {
    const { now } = request;
    try {
      const opened = await this.#open(scope, now);
      const requested = await this.#identify(scope, request, opened);
      return await opened.call((account) => getPayments(account).findOutcome(requested));
    } catch (error) {
      // A rejected query does not show whether the payment was made.
      throw toUnavailable(error);
    }
  }

  async #identify(
    scope: Scope,
    request: PaymentRequest,
    { connection, call }: OpenedGateway,
  ): Promise<RequestedPayment> {
    const { key, amount, currency, payment_id, invoice_id, invoice_number, gateway_payment_id, is_page } = request;
    const author = { user_id: '', now: request.now };
    const target = { connection, call, author };
    const provider_customer_id = await ensureProviderCustomer(this.#stores, scope, request.customer_id, target);
    const mapped = { connection_id: connection.id, entity_type: 'invoice', entity_id: invoice_id } as const;
    const invoice = await IntegrationMappingModel.findCurrent(scope, mapped, { database: this.#stores.postgres });
    return {
      ...{ key, amount, currency, payment_id, invoice_id, invoice_number, gateway_payment_id, is_page },
      ...(await this.#measureAge(request)),
      provider_customer_id,
      provider_invoice_id: request.is_closed ? null : (invoice?.provider_entity_id ?? null),
    };
  }

  async cancel(scope: Scope, gateway_payment_id: string, now: Date): Promise<void> {
    try {
      const opened = await this.#open(scope, now);
      await opened.call((account) => getPayments(account).cancel(gateway_payment_id));
    } catch (error) {
      throw toUnavailable(error);
    }
  }

  async #measureAge({ requested_at }: Pick<PaymentRequest, 'requested_at'>) {
    return { requested_at, key_age_seconds: await measureKeyAge(this.#stores.postgres, requested_at) };
  }

  async refund(scope: Scope, { now, requested_at, ...request }: Refund): Promise<RefundOutcome> {
    const { key } = request;
    const age = await this.#measureAge({ requested_at });
    const refund = { ...request, ...age, refund_id: key };
    try {
      const opened = await this.#open(scope, now);
      return await opened.call(async (account) => {
        const payments = getPayments(account);
        if (!payments.refund) return { outcome: 'failed', error: `${this.#gateway} makes no refunds on request` };
        return await payments.refund(refund);
      });
    } catch (error) {
      if (isRefusal(error)) return { outcome: 'failed', error: error.message };
      throw toUnavailable(error);
    }
  }
}

/**
 * Whether the provider rejected this request, so that nothing was paid. Two errors do not count: one about the credentials, and one about
 * the state of the payment or refund, which may have moved money.
 */
function isRefusal(error: unknown): error is ProviderError {
  const isPerson = error instanceof ProviderError && error.error_class !== 'wait';
  return isPerson && !error.is_unauthorized && !error.is_of_record;
}

function isAway(error: unknown): error is ProviderError {
  return error instanceof ProviderError && error.error_class === 'wait' && !error.is_of_record;
}

function toUnavailable(error: unknown): unknown {
  return error instanceof ProviderError ? unavailable(`the payment provider (${error.message})`, error) : error;
}
