/** Records of Chargebee, with the fields that this service reads. Numbers are texts (exact-json.ts). */

type ChargebeeCustomer = {
  readonly id: string;
  readonly deleted?: boolean;
  readonly primary_payment_source_id?: string;
};

export type TransactionStatus =
  | 'in_progress'
  | 'success'
  | 'voided'
  | 'failure'
  | 'timeout'
  | 'needs_attention'
  | 'late_failure';

export type ChargebeeInvoice = {
  readonly id: string;
  readonly customer_id: string;
  readonly status: string;
  readonly currency_code: string;
  readonly total?: string;
  readonly amount_due?: string;
  readonly write_off_amount?: string;
  readonly deleted?: boolean;
  readonly notes?: readonly { readonly note: string }[];
  readonly linked_payments?: readonly {
    readonly txn_id: string;
    readonly applied_amount: string;
    readonly txn_status?: TransactionStatus;
  }[];
  /** Credits of other invoices that pay this one. */
  readonly applied_credits?: readonly { readonly cn_id: string; readonly applied_amount: string }[];
  readonly adjustment_credit_notes?: readonly { readonly cn_id: string }[];
  readonly issued_credit_notes?: readonly { readonly cn_id: string }[];
};

export type ChargebeeTransaction = {
  readonly id: string;
  readonly type: 'authorization' | 'payment' | 'refund' | 'payment_reversal';
  /** `not_applicable` if the money did not pass through Chargebee. */
  readonly gateway: string;
  readonly currency_code: string;
  readonly amount?: string;
  /** Unix seconds. */
  readonly date?: string;
  readonly status?: TransactionStatus;
  /** Whether the customer paid on a page, or the seller charged a saved method. */
  readonly initiator_type?: 'customer' | 'merchant';
  readonly reference_number?: string;
  readonly error_code?: string;
  readonly error_text?: string;
  /** Payment that this transaction refunds; the second field is for money outside Chargebee. */
  readonly refunded_txn_id?: string;
  readonly reference_transaction_id?: string;
  readonly linked_invoices?: readonly { readonly invoice_id: string; readonly applied_amount: string }[];
  readonly deleted?: boolean;
};

export type ChargebeeCreditNote = {
  readonly id: string;
  readonly type: 'adjustment' | 'refundable' | 'store';
  readonly status: 'adjusted' | 'refunded' | 'refund_due' | 'voided';
  readonly currency_code: string;
  readonly total?: string;
  readonly notes?: readonly string[];
  readonly linked_refunds?: readonly {
    readonly txn_id: string;
    readonly applied_amount: string;
    readonly txn_status?: TransactionStatus;
  }[];
  readonly deleted?: boolean;
};

export type ChargebeePaymentSource = {
  readonly id: string;
  readonly customer_id: string;
  readonly type: string;
  readonly status: string;
  readonly deleted?: boolean;
  readonly card?: {
    readonly brand: string;
    readonly last4: string;
    readonly expiry_month: string;
    readonly expiry_year: string;
  };
};

type ChargebeeHostedPage = {
  readonly id: string;
  readonly url: string;
  readonly state: string;
  /** Unix seconds. */
  readonly expires_at: string;
};

type ChargebeeComment = {
  readonly id: string;
  readonly notes: string;
  /** Unix seconds. */
  readonly created_at: string;
};

/** Records by the name of their field in an answer. */
export type ChargebeeRecords = {
  readonly customer: ChargebeeCustomer;
  readonly invoice: ChargebeeInvoice;
  readonly transaction: ChargebeeTransaction;
  readonly credit_note: ChargebeeCreditNote;
  readonly payment_source: ChargebeePaymentSource;
  readonly hosted_page: ChargebeeHostedPage;
  readonly comment: ChargebeeComment;
};
