/** SQL condition of an invoice with an unpaid amount: final, not archived. */
export const UNPAID_INVOICE = `invoice_status = 'FINALIZED' and status = 'published' and amount_remaining > 0`;
