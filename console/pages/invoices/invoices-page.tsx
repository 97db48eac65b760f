import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function InvoicesPage(): ReactNode {
  return <PageHead title="InvoicesPage" />;
}
