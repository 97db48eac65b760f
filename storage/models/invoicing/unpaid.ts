/** SQL condition of an invoice that still has to be paid: final, not archived, with an amount left. It is overdue after its `due_date`. */
export const UNPAID_INVOICE = `invoice_status = 'FINALIZED' and status = 'published' and amount_remaining > 0`;
