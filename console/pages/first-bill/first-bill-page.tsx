import type { ReactNode } from 'react';
import { PageHead } from '../../components/page.tsx';

export function FirstBillPage(): ReactNode {
  return <PageHead title="FirstBillPage" />;
}
