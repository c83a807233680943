// Rdata of stored values in the form that the nameserver encodes.
export { addressRdata, nameRdata, type Rdata, rdataOf, soaRdata, textRdata } from '../../../dns/rdata/rdata-wire.ts'
