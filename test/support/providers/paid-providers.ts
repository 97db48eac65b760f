/**
 * Actions of customers, banks and people on the money of an invoice at a provider, and the records that events report
 * about them.
 */
import type { ReportedRecord } from './carbon-layer.ts';
import { RazorpayDouble } from './razorpay-double.ts';
import type { PaymentRecord as RazorpayPayment } from './razorpay-fake-book.ts';
import { StripeDouble } from './stripe-double.ts';
import { StripeRefusal } from './stripe-fake-refusal.ts';

export type PaidProvider = {
  readonly double: StripeDouble | RazorpayDouble;
  /** Id of a payment that does not exist at this provider. */
  readonly unknown_id: string;
  pay(copy_id: string): ReportedRecord;
  decline(copy_id: string): ReportedRecord;
  /** `units` is an amount in the unit of the currency. */
  refund(payment: ReportedRecord, units: number): ReportedRecord;
  dispute(payment: ReportedRecord): ReportedRecord;
  findPaid(copy_id: string): ReportedRecord;
  /** Lists the payments of the copy that brought money. */
  listMoney(copy_id: string): readonly string[];
};

const UNIT = 100;

export class StripePaid implements PaidProvider {
  readonly double = new StripeDouble();
  readonly unknown_id = 'pi_of_somebody_else';

  get #book() {
    return this.double.fake.book;
  }

  pay(copy_id: string): ReportedRecord {
    return this.#report('payment', 'captured', this.double.payCopy(copy_id));
  }

  decline(copy_id: string): ReportedRecord {
    try {
      this.#book.payInvoice(copy_id, { card: 'pm_card_chargeDeclined' });
    } catch (error) {
      if (!(error instanceof StripeRefusal)) throw error;
    }
    return this.#report('payment', 'failed', this.#book.listPayments(copy_id)[0]!.payment.payment_intent!);
  }

  refund({ remote_id }: ReportedRecord, units: number): ReportedRecord {
    return this.#report('refund', 'processed', this.#book.refundPayment(remote_id, units * UNIT).id);
  }

  dispute({ remote_id }: ReportedRecord): ReportedRecord {
    return this.#report('dispute', 'open', this.#book.disputePayment(remote_id).id);
  }

  findPaid(copy_id: string): ReportedRecord {
    const paid = this.#book.listPayments(copy_id).find(({ status }) => status === 'paid')!;
    return this.#report('payment', 'captured', paid.payment.payment_intent!);
  }

  listMoney(copy_id: string): string[] {
    return this.#book
      .listPayments(copy_id)
      .filter(({ status }) => status === 'paid')
      .map(({ payment: { payment_intent: id }, amount_requested }) => {
        const refunds = this.#book.list('refund').filter((refund) => refund['payment_intent'] === id);
        const refunded = refunds.reduce((sum, refund) => sum + Number(refund['amount']), 0);
        return describeMoney(id!, amount_requested, refunded);
      });
  }

  #report(entity_type: ReportedRecord['entity_type'], state: ReportedRecord['state'], id: string): ReportedRecord {
    return { entity_type, state, remote_id: id, metadata: structuredClone(this.#book.records.get(id)!) };
  }
}

export class RazorpayPaid implements PaidProvider {
  readonly double = new RazorpayDouble();
  readonly unknown_id = 'pay_ofsomebodyelse';

  get #book() {
    return this.double.fake.book;
  }

  pay(copy_id: string): ReportedRecord {
    return this.#report('payment', 'captured', this.double.payCopy(copy_id));
  }

  decline(copy_id: string): ReportedRecord {
    return this.#report('payment', 'failed', this.#book.payInvoice(copy_id, { status: 'failed' }).id);
  }

  refund({ remote_id }: ReportedRecord, units: number): ReportedRecord {
    return this.#report('refund', 'processed', this.#book.createRefund(remote_id, { amount: units * UNIT }).id);
  }

  dispute({ remote_id }: ReportedRecord): ReportedRecord {
    return this.#report('dispute', 'open', this.#book.disputePayment(remote_id).id);
  }

  findPaid(copy_id: string): ReportedRecord {
    return this.#report('payment', 'captured', this.#listPaid(copy_id)[0]!.id);
  }

  listMoney(copy_id: string): string[] {
    return this.#listPaid(copy_id).map(({ id, amount, amount_refunded }) => describeMoney(id, amount, amount_refunded));
  }

  #listPaid(copy_id: string): RazorpayPayment[] {
    const payments = this.#book.list<RazorpayPayment>('payment', { invoice_id: copy_id });
    return payments.filter(({ status }) => status === 'captured' || status === 'refunded');
  }

  #report(entity_type: ReportedRecord['entity_type'], state: ReportedRecord['state'], id: string): ReportedRecord {
    return { entity_type, state, remote_id: id, metadata: structuredClone(this.#book.records.get(id)!) };
  }
}

function describeMoney(id: string, amount: number, refunded: number): string {
  return `${id}: ${amount / UNIT}, ${refunded / UNIT} refunded`;
}
