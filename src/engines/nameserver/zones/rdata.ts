// Rdata of stored values as the nameserver encodes it.
export { addressRdata, nameRdata, type Rdata, rdataOf, soaRdata, textRdata } from '../../../dns/rdata/rdata-wire.ts'
