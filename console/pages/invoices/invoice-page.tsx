import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function InvoicePage(): ReactNode {
  return <PageHead title="InvoicePage" />;
}
